/** ISO 639 code of a BCP 47 tag, of two letters where there is one. */
export function languageCode(tag: string): string {
  const primary = tag.toLowerCase().split('-')[0]!;
  return ISO_639_CODES[primary] ?? primary;
}

/** In English; the code itself where nobody has named it. */
export function languageName(code: string): string {
  return OWN_NAMES[code] ?? ICU_NAMES.of(code) ?? code;
}

/** Of a kind of language that is spoken somewhere, such as `en-gb-scotland`, in English. */
export function dialectName(tag: string): string {
  const own = OWN_NAMES[tag];
  if (own !== undefined) return own;
  try {
    return ICU_NAMES.of(tag) ?? tag;
  } catch {
    return languageName(languageCode(tag));
  }
}

const ICU_NAMES = new Intl.DisplayNames('en', { type: 'language' });

/** Where eSpeak NG uses another code. */
const ISO_639_CODES: Record<string, string> = Object.assign(Object.create(null), { cmn: 'zh', hyw: 'hy', piqd: 'tlh' });

/** Where ICU has none, a wrong one, or one that hides what sets the dialect apart. */
const OWN_NAMES: Record<string, string> = Object.assign(Object.create(null), {
  bn: 'Bengali',
  'ca-ba': 'Balearic Catalan',
  'ca-nw': 'North-Western Catalan',
  'ca-va': 'Valencian Catalan',
  cmn: 'Mandarin Chinese',
  'cmn-latn-pinyin': 'Mandarin Chinese in Pinyin',
  'en-029': 'Caribbean English',
  'en-gb-scotland': 'Scottish English',
  'en-gb-x-gbclan': 'Lancashire English',
  'en-gb-x-gbcwmd': 'West Midlands English',
  'en-gb-x-rp': 'English in Received Pronunciation',
  'en-us-nyc': 'New York English',
  'fa-latn': 'Persian in Latin letters',
  'fr-be': 'Belgian French',
  hyw: 'Western Armenian',
  kaa: 'Karakalpak',
  kl: 'Greenlandic',
  mto: 'Totontepec Mixe',
  nci: 'Classical Nahuatl',
  piqd: 'Klingon',
  py: 'Pyash',
  qdb: 'Belter',
  qya: 'Quenya',
  'ru-cl': 'Classical Russian',
  'ru-lv': 'Latvian Russian',
  sjn: 'Sindarin',
  'vi-vn-x-central': 'Central Vietnamese',
  'vi-vn-x-south': 'Southern Vietnamese',
  'yue-latn-jyutping': 'Cantonese in Jyutping',
});
