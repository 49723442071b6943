/**
 * Unambiguous words of Hindi-English conversations, in both scripts. Words of either language ("bus" and बस, "is" and
 * इस, "hum" and हम) are among the doubtful ones or left out.
 */

/** English words in phonetic Hindi spelling: Devanagari to English. */
export const ENGLISH_IN_DEVANAGARI: ReadonlyMap<string, string> = pairs(`
अकाउंट account, अकाउन्ट account, अपडेट update, अपलोड upload, अपॉइंटमेंट appointment, अपॉइन्टमेंट appointment,
अमाउंट amount, अमेज़न Amazon, अलर्ट alert, अवेलेबल available, आइडिया idea, आईडी ID,
इंग्लिश English, इंटरनेट internet, इंटरव्यू interview, इंश्योरेंस insurance, इनवॉइस invoice, इन्वॉइस invoice,
इशू issue, इश्यू issue, ईमेल email, एक्सचेंज exchange, एक्सटेंशन extension, एक्स्ट्रा extra, एजेंट agent,
एटीएम ATM, एड्रेस address, एप्लिकेशन application, एप्लीकेशन application, एरर error, ऐप app, ऑनलाइन online,
ऑफर offer, ऑफिस office, ऑफ़िस office, ऑफलाइन offline, ऑर्डर order, ऑप्शन option, ऑटोमैटिक automatic, ओके okay,
ओटीपी OTP, कंपनी company, कम्पनी company, कंप्यूटर computer, कम्प्यूटर computer, कंप्लेंट complaint,
कम्प्लेंट complaint, कंफर्म confirm, कन्फर्म confirm, कन्फ़र्म confirm, कनेक्शन connection, कनेक्ट connect,
करेक्ट correct, कस्टमर customer, कार्ड card, कॉपी copy, कॉल call, कॉलेज college, कॉन्टैक्ट contact,
कैंसल cancel, कैंसिल cancel, कैशबैक cashback, कोड code, क्रेडिट credit, क्लिक click, क्लियर clear,
गूगल Google, ग्रुप group, चार्ज charge, चेंज change, चेक check, चैट chat, चैनल channel, जॉब job,
टाइम time, टिकट ticket, टीम team, टेक्निकल technical, टेस्ट test, टैक्स tax, ट्रांजैक्शन transaction,
ट्रांज़ैक्शन transaction, ट्रांसफर transfer, ट्राई try, ट्रेन train, डाउनलोड download, डायल dial, डिटेल detail,
डिपार्टमेंट department, डिलीट delete, डिलीवर deliver, डिलीवरी delivery, डिस्काउंट discount, डेटा data,
डेबिट debit, नंबर number, नम्बर number, नेटवर्क network, नोट note, नोटिफिकेशन notification, पासवर्ड password,
पासपोर्ट passport, पेमेंट payment, पेमेन्ट payment, पॉलिसी policy, पॉसिबल possible, प्रॉब्लम problem,
प्रोब्लम problem, प्रोसेस process, प्रोजेक्ट project, प्रोडक्ट product, प्लान plan, प्लीज please, प्लीज़ please,
फाइनल final, फाइल file, फ़ाइल file, फीडबैक feedback, फैमिली family, फोन phone, फ़ोन phone, फॉर्म form,
फ़ॉर्म form, फ्लाइट flight, बजट budget, बटन button, बिजनेस business, बिज़नेस business, बिल bill,
बुकिंग booking, बैंक bank, बैलेंस balance, ब्रांच branch, ब्लॉक block, मशीन machine, मार्केट market,
मिनट minute, मीटिंग meeting, मेल mail, मेसेज message, मैसेज message, मैनेजर manager, मोबाइल mobile,
यूज use, यूज़ use, यूजर user, यूज़र user, रजिस्टर register, रजिस्ट्रेशन registration, रिक्वेस्ट request,
रिचार्ज recharge, रिजेक्ट reject, रिटर्न return, रिपोर्ट report, रिप्लाई reply, रिफंड refund, रिमाइंडर reminder,
रिकॉर्डिंग recording, रेट rate, लाइन line, लॉगिन login, लिंक link, लिमिट limit, लिस्ट list,
लैपटॉप laptop, लोकेशन location, लोन loan, वर्क work, वाईफाई WiFi, वीडियो video, वेबसाइट website,
वेरिफाई verify, वेरीफाई verify, वेरिफिकेशन verification, वेलकम welcome, व्हाट्सएप WhatsApp, व्हाट्सऐप WhatsApp,
सर्विस service, सॉरी sorry, सॉफ्टवेयर software, सिस्टम system, सेंटर center, सेलेक्ट select, सेव save,
स्कीम scheme, स्कूल school, स्क्रीन screen, स्टार्ट start, स्टेटमेंट statement, स्टेटस status, स्टॉप stop, स्टोर store,
सपोर्ट support, सब्सक्रिप्शन subscription, सबमिट submit, शॉपिंग shopping, शेयर share, हेलो hello, हैलो hello,
होटल hotel, होल्ड hold, हॉस्पिटल hospital, थैंक्यू thank-you, गुड good, मॉर्निंग morning, इवनिंग evening
`);

/** Hindi words as typed in Latin letters. None is an English word. */
export const HINDI_IN_LATIN: ReadonlyMap<string, string> = flipped(`
हाँ haan haanji, नहीं nahi nahin nahee, है hai, हैं hain, हूँ hoon, हूं hu, था tha, थी thi, क्या kya, क्यों kyon kyun kyu,
कैसे kaise, कैसा kaisa, कैसी kaisi, कौन kaun, कहाँ kahan kahaan, कब kab, कितना kitna, कितने kitne, कितनी kitni,
आप aap, आपका aapka, आपकी aapki, आपके aapke, आपको aapko, मैंने maine, मुझे mujhe, मुझको mujhko, मेरा mera,
मेरी meri, हमारा hamara humara, हमारी hamari humari, हमारे hamare humare, हमें humein hamein, तुम tum,
तुम्हारा tumhara, तुम्हारी tumhari, यह yeh, वह woh, इसका iska, इसकी iski, इसके iske, इसको isko, उसका uska,
उसकी uski, उसके uske, उसको usko, उनका unka, उनकी unki, उनको unko, अभी abhi, कभी kabhi, सभी sabhi, फिर phir,
और aur, लेकिन lekin, मगर magar, क्योंकि kyunki kyonki, अगर agar, बहुत bahut bohot, थोड़ा thoda thora,
थोड़ी thodi, ज़्यादा zyada jyada, अच्छा accha acha achha, अच्छी acchi achi, ठीक theek thik, सही sahi, गलत galat,
करना karna, करने karne, करनी karni, करता karta, करती karti, करते karte, करूँगा karunga, करेंगे karenge, करेगा karega,
करो karo, करिए kariye, कीजिए kijiye kijie, किया kiya, होना hona, होता hota, होती hoti, होगा hoga, होगी hogi,
हुआ hua, हुई hui, गया gaya, गयी gayi, गई gai, आया aaya, आना aana, जाना jaana, जाता jaata, रहा raha, रही rahi, रहे rahe,
चाहिए chahiye chahie, चाहता chahta, चाहती chahti, दीजिए dijiye dijie, लीजिए lijiye lijie,
बताइए bataiye bataie, बताओ batao, बोलो bolo, सुनिए suniye, पता pata, मतलब matlab, समझ samajh, कुछ kuch kuchh,
कोई koi, सब sab, यहाँ yahan yahaan, वहाँ wahan wahaan, आज aaj, कल kal, परसों parso, रात raat,
पैसा paisa, पैसे paise, रुपये rupaye rupay, घर ghar, काम kaam, नाम naam, लिए liye, साथ saath, वाला wala, वाली wali,
वाले wale, भी bhi, का ka, की ki, के ke, जी ji, नमस्ते namaste, धन्यवाद dhanyavaad dhanyavad, शुक्रिया shukriya,
तरह tarah, बाद baad, पहले pehle pahle, दोबारा dobara, वापस wapas vapas, तक tak
`);

/** Latin spellings that are also English words: Hindi only between Hindi words. */
export const DOUBTFUL_IN_LATIN: ReadonlyMap<string, string> = flipped(`
में me mein, से se, को ko, हम hum, मैं main, हो ho, तो to, थे the, पर par, कर kar, दो do, ने ne, ही hi, जो jo, लोग log, अब ab,
इस is, उस us, मेरे mere, लेना lena, देना dena, बात baat, ना na, दे de, ले le, बस bas
`);

function pairs(lines: string): Map<string, string> {
  return new Map(
    entriesOf(lines).map(([devanagari = '', english = '']) => [devanagari.normalize('NFC'), english.replace('-', ' ')]),
  );
}

function flipped(lines: string): Map<string, string> {
  return new Map(
    entriesOf(lines).flatMap(([devanagari = '', ...spellings]) =>
      spellings.map((spelling): [string, string] => [spelling, devanagari.normalize('NFC')]),
    ),
  );
}

function entriesOf(lines: string): string[][] {
  return lines
    .split(',')
    .map((entry) => entry.trim().split(/\s+/u))
    .filter((entry) => entry.length > 1);
}
