/** Words around numbers in the languages of India. */
export interface IndianWords {
  point: string;
  minus: string;
  plus: string;
  percent: string;
  to: string;
  rupees: string;
  /** One rupee, if it is a different word. */
  rupee?: string;
  paise: string;
  dollars: string;
  euros: string;
  pounds: string;
  /** Clock times: `{h}` and `{m}` are number words. */
  onTheHour: string;
  hourAndMinutes: string;
  /** With `{s}`. */
  seconds: string;
}

export const INDIAN_WORDS: Record<string, IndianWords> = {
  hi: {
    ...{ point: 'दशमलव', minus: 'माइनस', plus: 'प्लस', percent: 'प्रतिशत', to: 'से' },
    ...{ rupees: 'रुपये', rupee: 'रुपया', paise: 'पैसे', dollars: 'डॉलर', euros: 'यूरो', pounds: 'पाउंड' },
    ...{ onTheHour: '{h} बजे', hourAndMinutes: '{h} बजकर {m} मिनट', seconds: '{s} सेकंड' },
  },
  bn: {
    ...{ point: 'দশমিক', minus: 'মাইনাস', plus: 'প্লাস', percent: 'শতাংশ', to: 'থেকে' },
    ...{ rupees: 'টাকা', paise: 'পয়সা', dollars: 'ডলার', euros: 'ইউরো', pounds: 'পাউন্ড' },
    ...{ onTheHour: '{h}টা', hourAndMinutes: '{h}টা {m} মিনিট', seconds: '{s} সেকেন্ড' },
  },
  ta: {
    ...{ point: 'புள்ளி', minus: 'மைனஸ்', plus: 'பிளஸ்', percent: 'சதவீதம்', to: 'முதல்' },
    ...{ rupees: 'ரூபாய்', paise: 'பைசா', dollars: 'டாலர்', euros: 'யூரோ', pounds: 'பவுண்டு' },
    ...{ onTheHour: '{h} மணி', hourAndMinutes: '{h} மணி {m} நிமிடம்', seconds: '{s} விநாடி' },
  },
  te: {
    ...{ point: 'పాయింట్', minus: 'మైనస్', plus: 'ప్లస్', percent: 'శాతం', to: 'నుండి' },
    ...{ rupees: 'రూపాయలు', rupee: 'రూపాయి', paise: 'పైసలు', dollars: 'డాలర్లు', euros: 'యూరోలు', pounds: 'పౌండ్లు' },
    ...{ onTheHour: '{h} గంటలు', hourAndMinutes: '{h} గంటల {m} నిమిషాలు', seconds: '{s} సెకన్లు' },
  },
  mr: {
    ...{ point: 'पॉइंट', minus: 'उणे', plus: 'प्लस', percent: 'टक्के', to: 'ते' },
    ...{ rupees: 'रुपये', rupee: 'रुपया', paise: 'पैसे', dollars: 'डॉलर', euros: 'युरो', pounds: 'पाउंड' },
    ...{ onTheHour: '{h} वाजता', hourAndMinutes: '{h} वाजून {m} मिनिटे', seconds: '{s} सेकंद' },
  },
  gu: {
    ...{ point: 'પોઈન્ટ', minus: 'માઈનસ', plus: 'પ્લસ', percent: 'ટકા', to: 'થી' },
    ...{ rupees: 'રૂપિયા', rupee: 'રૂપિયો', paise: 'પૈસા', dollars: 'ડૉલર', euros: 'યુરો', pounds: 'પાઉન્ડ' },
    ...{ onTheHour: '{h} વાગ્યે', hourAndMinutes: '{h} વાગીને {m} મિનિટ', seconds: '{s} સેકન્ડ' },
  },
  kn: {
    ...{ point: 'ಪಾಯಿಂಟ್', minus: 'ಮೈನಸ್', plus: 'ಪ್ಲಸ್', percent: 'ಪ್ರತಿಶತ', to: 'ರಿಂದ' },
    ...{ rupees: 'ರೂಪಾಯಿ', paise: 'ಪೈಸೆ', dollars: 'ಡಾಲರ್', euros: 'ಯೂರೋ', pounds: 'ಪೌಂಡ್' },
    ...{ onTheHour: '{h} ಗಂಟೆ', hourAndMinutes: '{h} ಗಂಟೆ {m} ನಿಮಿಷ', seconds: '{s} ಸೆಕೆಂಡು' },
  },
  ml: {
    ...{ point: 'പോയിന്റ്', minus: 'മൈനസ്', plus: 'പ്ലസ്', percent: 'ശതമാനം', to: 'മുതൽ' },
    ...{ rupees: 'രൂപ', paise: 'പൈസ', dollars: 'ഡോളർ', euros: 'യൂറോ', pounds: 'പൗണ്ട്' },
    ...{ onTheHour: '{h} മണി', hourAndMinutes: '{h} മണി {m} മിനിറ്റ്', seconds: '{s} സെക്കൻഡ്' },
  },
  pa: {
    ...{ point: 'ਦਸ਼ਮਲਵ', minus: 'ਮਾਈਨਸ', plus: 'ਪਲੱਸ', percent: 'ਪ੍ਰਤੀਸ਼ਤ', to: 'ਤੋਂ' },
    ...{ rupees: 'ਰੁਪਏ', rupee: 'ਰੁਪਇਆ', paise: 'ਪੈਸੇ', dollars: 'ਡਾਲਰ', euros: 'ਯੂਰੋ', pounds: 'ਪੌਂਡ' },
    ...{ onTheHour: '{h} ਵਜੇ', hourAndMinutes: '{h} ਵੱਜ ਕੇ {m} ਮਿੰਟ', seconds: '{s} ਸਕਿੰਟ' },
  },
  or: {
    ...{ point: 'ଦଶମିକ', minus: 'ମାଇନସ', plus: 'ପ୍ଲସ', percent: 'ପ୍ରତିଶତ', to: 'ରୁ' },
    ...{ rupees: 'ଟଙ୍କା', paise: 'ପଇସା', dollars: 'ଡଲାର', euros: 'ୟୁରୋ', pounds: 'ପାଉଣ୍ଡ' },
    ...{ onTheHour: '{h}ଟା', hourAndMinutes: '{h}ଟା {m} ମିନିଟ', seconds: '{s} ସେକେଣ୍ଡ' },
  },
  as: {
    ...{ point: 'দশমিক', minus: 'মাইনাছ', plus: 'প্লাছ', percent: 'শতাংশ', to: 'ৰ পৰা' },
    ...{ rupees: 'টকা', paise: 'পইচা', dollars: 'ডলাৰ', euros: 'ইউৰো', pounds: 'পাউণ্ড' },
    ...{ onTheHour: '{h} বজাত', hourAndMinutes: '{h} বাজি {m} মিনিট', seconds: '{s} ছেকেণ্ড' },
  },
  ur: {
    ...{ point: 'اعشاریہ', minus: 'منفی', plus: 'پلس', percent: 'فیصد', to: 'سے' },
    ...{ rupees: 'روپے', rupee: 'روپیہ', paise: 'پیسے', dollars: 'ڈالر', euros: 'یورو', pounds: 'پاؤنڈ' },
    ...{ onTheHour: '{h} بجے', hourAndMinutes: '{h} بج کر {m} منٹ', seconds: '{s} سیکنڈ' },
  },
};

export const INDIAN_ABBREVIATIONS: Record<string, ReadonlyMap<string, string>> = {
  hi: new Map([
    ['डॉ.', 'डॉक्टर'],
    ['डॉ', 'डॉक्टर'],
    ['प्रो.', 'प्रोफ़ेसर'],
    ['पं.', 'पंडित'],
    ['सं.', 'संख्या'],
    ['क्र.', 'क्रमांक'],
    ['नं.', 'नंबर'],
    ['मो.', 'मोबाइल'],
    ['कि.मी.', 'किलोमीटर'],
    ['कि.ग्रा.', 'किलोग्राम'],
    ['से.मी.', 'सेंटीमीटर'],
    ['उ.प्र.', 'उत्तर प्रदेश'],
    ['म.प्र.', 'मध्य प्रदेश'],
    ['ई.', 'ईस्वी'],
  ]),
  mr: new Map([
    ['डॉ.', 'डॉक्टर'],
    ['प्रा.', 'प्राध्यापक'],
    ['कि.मी.', 'किलोमीटर'],
    ['क्र.', 'क्रमांक'],
  ]),
  bn: new Map([
    ['ডা.', 'ডাক্তার'],
    ['ড.', 'ডক্টর'],
    ['মো.', 'মোহাম্মদ'],
  ]),
  gu: new Map([['ડૉ.', 'ડૉક્ટર']]),
  pa: new Map([['ਡਾ.', 'ਡਾਕਟਰ']]),
  ta: new Map([['டாக்.', 'டாக்டர்']]),
  te: new Map([['డా.', 'డాక్టర్']]),
  kn: new Map([['ಡಾ.', 'ಡಾಕ್ಟರ್']]),
  ml: new Map([['ഡോ.', 'ഡോക്ടർ']]),
};

/** Words in Indian scripts after which numbers are read digit by digit. The English ones apply too. */
export const INDIAN_NUMBER_CUES: readonly string[] = [
  ...['ओटीपी', 'पिन', 'कोड', 'खाता', 'ऑर्डर', 'आधार', 'टिकट', 'पासवर्ड', 'पिनकोड', 'क्रमांक', 'संख्या'],
  ...['ওটিপি', 'পিন', 'কোড', 'ஓடிபி', 'பின்', 'குறியீடு', 'ఓటీపీ', 'పిన్', 'కోడ్', 'ઓટીપી', 'પિન', 'કોડ'],
  ...['ಒಟಿಪಿ', 'ಪಿನ್', 'ಕೋಡ್', 'ഒടിപി', 'പിൻ', 'കോഡ്', 'ਓਟੀਪੀ', 'ਪਿੰਨ', 'ਕੋਡ', 'ଓଟିପି', 'ପିନ', 'କୋଡ', 'پن', 'کوڈ'],
];
