/** ISO 639 code of a BCP 47 tag, two letters if available. */
export function languageCode(tag: string): string {
  const primary = tag.toLowerCase().split('-')[0]!;
  return ISO_639_CODES[primary] ?? primary;
}

/** In English; the code itself if unknown. */
export function languageName(code: string): string {
  return OWN_NAMES[code] ?? ICU_NAMES.of(code) ?? code;
}

/** English name of a dialect such as `en-gb-scotland`. */
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

/** Codes that eSpeak NG writes differently. */
const ISO_639_CODES: Record<string, string> = Object.assign(Object.create(null), { cmn: 'zh', hyw: 'hy', piqd: 'tlh' });

/** Where ICU's name is missing, wrong, or hides the dialect. */
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
