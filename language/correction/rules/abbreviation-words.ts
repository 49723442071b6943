const words = (text: string): ReadonlySet<string> => new Set(text.split(/\s+/));

/** A full stop after one of these belongs to it and ends no sentence. */
export const NEVER_ENDING = words(
  `mr mrs ms dr prof st rev hon gen col capt lt sgt sen rep gov pres messrs mt ft fig figs vol vols pp eq ref refs ch sec ext
  approx appt vs cf viz ca incl esp resp max min avg est tel nos dept e.g i.e eg ie`,
);

/** A full stop after one of these may also end the sentence. */
export const ENDING_ABBREVIATIONS = words(
  'etc. a.m. p.m. inc. ltd. co. corp. jr. sr. no. ave. rd. blvd. mon. tue. tues. wed. thu. thurs. fri. sat. sun. jan. feb. mar. apr. jun. jul. aug. sep. sept. oct. nov. dec. min. mins. hr. hrs. sec. secs. yr. yrs. wk. wks. lb. lbs. oz. bn. mn.',
);

/** Unambiguous anywhere in an English text. */
export const ABBREVIATIONS: ReadonlyMap<string, string> = new Map([
  ['asap', 'as soon as possible'],
  ['fyi', 'for your information'],
  ['eta', 'estimated time of arrival'],
  ['tbd', 'to be determined'],
  ['tba', 'to be announced'],
  ['tbc', 'to be confirmed'],
  ['eod', 'end of day'],
  ['appt', 'appointment'],
  ['appts', 'appointments'],
  ['mtg', 'meeting'],
  ['mtgs', 'meetings'],
  ['approx', 'approximately'],
  ['govt', 'government'],
  ['dept', 'department'],
  ['depts', 'departments'],
  ['mgmt', 'management'],
  ['mgr', 'manager'],
  ['acct', 'account'],
  ['accts', 'accounts'],
  ['assoc', 'associate'],
  ['asst', 'assistant'],
  ['intl', 'international'],
  ['natl', 'national'],
  ['univ', 'university'],
  ['bldg', 'building'],
  ['addl', 'additional'],
  ['amt', 'amount'],
  ['avg', 'average'],
  ['qty', 'quantity'],
  ['reqd', 'required'],
  ['rcvd', 'received'],
  ['vs', 'versus'],
  ['etc', 'and so on'],
  ['e.g.', 'for example,'],
  ['e.g', 'for example,'],
  ['i.e.', 'that is,'],
  ['i.e', 'that is,'],
]);

/** Used in messages only. */
export const SHORTHAND: ReadonlyMap<string, string> = new Map([
  ['btw', 'by the way'],
  ['idk', "I don't know"],
  ['imo', 'in my opinion'],
  ['imho', 'in my humble opinion'],
  ['tbh', 'to be honest'],
  ['afaik', 'as far as I know'],
  ['brb', 'be right back'],
  ['ttyl', 'talk to you later'],
  ['omw', 'on my way'],
  ['pls', 'please'],
  ['plz', 'please'],
  ['thx', 'thanks'],
  ['thnx', 'thanks'],
  ['tmrw', 'tomorrow'],
  ['tmrow', 'tomorrow'],
  ['2moro', 'tomorrow'],
  ['2morrow', 'tomorrow'],
  ['2nite', 'tonight'],
  ['2day', 'today'],
  ['gr8', 'great'],
  ['l8r', 'later'],
  ['l8', 'late'],
  ['b4', 'before'],
  ['m8', 'mate'],
  ['w8', 'wait'],
  ['msg', 'message'],
  ['msgs', 'messages'],
  ['ppl', 'people'],
  ['cuz', 'because'],
  ['coz', 'because'],
  ['bcoz', 'because'],
]);

/** Written in capitals without shouting. */
export const ACRONYMS = words('asap fyi eta tbd tba tbc eod btw idk imo imho tbh afaik brb ttyl omw');

/** After a number, with the plural. */
export const UNITS_OF_TIME: ReadonlyMap<string, readonly [one: string, more: string]> = new Map<
  string,
  readonly [string, string]
>(
  (
    [
      ['min', 'minute'],
      ['hr', 'hour'],
      ['sec', 'second'],
      ['wk', 'week'],
      ['yr', 'year'],
    ] as const
  ).flatMap(([short, long]) => [
    [short, [long, `${long}s`]] as const,
    [`${short}s`, [`${long}s`, `${long}s`]] as const,
  ]),
);

export const BEFORE_NUMBERS: ReadonlyMap<string, string> = new Map([
  ['no', 'number'],
  ['nos', 'numbers'],
  ['p', 'page'],
  ['pp', 'pages'],
  ['vol', 'volume'],
  ['fig', 'figure'],
  ['ch', 'chapter'],
  ['sec', 'section'],
  ['ext', 'extension'],
]);

/** After the name of a street, capitalized. */
export const STREETS: ReadonlyMap<string, string> = new Map([
  ['Dr', 'Drive'],
  ['St', 'Street'],
  ['Ave', 'Avenue'],
  ['Rd', 'Road'],
  ['Blvd', 'Boulevard'],
]);

/** Before a name, capitalized. Mr., Mrs. and Ms. are never written out. */
export const TITLES: ReadonlyMap<string, string> = new Map([
  ['Dr', 'Doctor'],
  ['St', 'Saint'],
  ['Prof', 'Professor'],
  ['Rev', 'Reverend'],
  ['Gen', 'General'],
  ['Capt', 'Captain'],
  ['Sgt', 'Sergeant'],
  ['Gov', 'Governor'],
  ['Sen', 'Senator'],
]);

/** Capitalized, beside a number. */
export const MONTHS: ReadonlyMap<string, string> = new Map([
  ['Jan', 'January'],
  ['Feb', 'February'],
  ['Mar', 'March'],
  ['Apr', 'April'],
  ['Jun', 'June'],
  ['Jul', 'July'],
  ['Aug', 'August'],
  ['Sep', 'September'],
  ['Sept', 'September'],
  ['Oct', 'October'],
  ['Nov', 'November'],
  ['Dec', 'December'],
]);

/** Capitalized, with a full stop. */
export const DAYS: ReadonlyMap<string, string> = new Map([
  ['Mon', 'Monday'],
  ['Tue', 'Tuesday'],
  ['Tues', 'Tuesday'],
  ['Wed', 'Wednesday'],
  ['Thu', 'Thursday'],
  ['Thurs', 'Thursday'],
  ['Fri', 'Friday'],
  ['Sat', 'Saturday'],
  ['Sun', 'Sunday'],
]);
