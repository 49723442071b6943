/**
 * Abbreviations that do not end a sentence, even before a capital or number: "Dr. Müller", "Sr. García", "5 Mio. Euro".
 * The engine knows how to read them. English has a table of its own.
 */
const ABBREVIATIONS: Record<string, ReadonlySet<string>> = Object.assign(Object.create(null), {
  de: words(
    'dr prof dipl ing hr fr st nr tel str bzw ca inkl exkl evtl ggf mio mrd abs art bd jh hl sog mind max zzgl',
  ),
  fr: words('m mm dr pr me mgr st ste tél av bd fig p pp vol env'),
  es: words('sr sra srta sres dr dra d dña da ud uds lic ing prof profa núm nro tel av avda art pág ee'),
  pt: words('sr sra srta dr dra d prof profa eng av r tel nº núm pág art ltda exmo exma'),
  it: words('sig sigg dott dr prof ing avv arch geom tel pag art egr gent spett'),
  nl: words('dhr mevr mw dr drs ir mr prof nr tel blz ca st'),
  pl: words('dr prof mgr inż ul al tel nr np godz ok św pl'),
  ru: words('г ул д кв тел им проф др пр стр руб тыс'),
  uk: words('м вул буд кв тел ім проф стор грн'),
  sv: words('dr prof tel nr kl ca st'),
  da: words('dr prof tlf nr kl ca hr fr'),
  nb: words('dr prof tlf nr kl ca hr fr'),
  cs: words('p pí dr ing mgr prof tel č ul nám'),
  ro: words('dl dna dr prof ing str nr tel'),
  tr: words('dr prof doç av sn no tel cad sok'),
  id: words('dr prof ir jl no tel'),
});

/** Languages that write "the third" as 3. */
const WITH_ORDINAL_STOPS: ReadonlySet<string> = new Set(
  'de da nb no fi cs sk sl hr sr bs pl hu et lv lt tr is fo lb eu'.split(' '),
);

/** Whether a sentence continues after a full stop at this word, whatever follows. */
export function continuesAfter(word: string, base: string): boolean {
  if (/^\d{1,2}$/.test(word)) return WITH_ORDINAL_STOPS.has(base);
  return ABBREVIATIONS[base]?.has(word.toLowerCase()) ?? false;
}

function words(text: string): ReadonlySet<string> {
  return new Set(text.split(' '));
}
