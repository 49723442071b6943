/** Two-word names, by the first word. */
export const PROPER_PAIRS: ReadonlyMap<string, ReadonlySet<string>> = new Map([
  ['new', new Set(['york', 'delhi', 'zealand', 'jersey', 'orleans', 'mexico'])],
  ['los', new Set(['angeles'])],
  ['san', new Set(['francisco', 'diego', 'jose'])],
  ['las', new Set(['vegas'])],
  ['united', new Set(['states', 'kingdom', 'nations'])],
  ['south', new Set(['africa', 'korea', 'america'])],
  ['north', new Set(['korea', 'america'])],
  ['latin', new Set(['america'])],
  ['sri', new Set(['lanka'])],
  ['hong', new Set(['kong'])],
  ['saudi', new Set(['arabia'])],
  ['costa', new Set(['rica'])],
  ['puerto', new Set(['rico'])],
  ['st', new Set(['louis', 'petersburg', 'moritz', 'lucia', 'kitts'])],
]);

const CAPITALIZED = `
  monday tuesday wednesday thursday friday saturday sunday mondays tuesdays wednesdays thursdays fridays saturdays sundays
  january february april june july september october november december
  english french german germans spanish italian italians portuguese russian russians chinese japanese korean koreans hindi urdu
  bengali tamil telugu gujarati punjabi malayalam arabic hebrew persian turkish dutch swedish norwegian finnish greek greeks
  indian indians american americans british african africans european europeans asian asians australian australians canadian
  canadians mexican mexicans brazilian brazilians vietnamese indonesian irish scottish welsh austrian belgian ukrainian
  romanian hungarian czech egyptian nigerian kenyan pakistani bangladeshi nepali israeli
  india pakistan bangladesh nepal germany france spain italy portugal russia japan korea america canada australia brazil mexico
  egypt nigeria kenya england scotland ireland wales europe africa asia austria belgium sweden norway finland denmark poland
  ukraine romania greece switzerland netherlands vietnam indonesia malaysia singapore thailand israel iran iraq argentina
  london berlin tokyo delhi mumbai bangalore bengaluru chennai kolkata hyderabad pune dubai amsterdam brussels vienna zurich
  geneva stockholm oslo copenhagen helsinki warsaw prague budapest athens lisbon madrid barcelona rome milan munich hamburg
  frankfurt dublin edinburgh manchester toronto vancouver montreal chicago boston seattle texas california florida beijing
  shanghai seoul sydney melbourne cairo nairobi lagos istanbul moscow paris
  christmas easter diwali ramadan hanukkah thanksgiving halloween
  microsoft netflix wikipedia`;

const WITH_OTHER_CAPITALS =
  'usa:USA uk:UK u.s.:U.S. u.s.a.:U.S.A. u.k.:U.K. ph.d.:Ph.D. nasa:NASA fbi:FBI youtube:YouTube whatsapp:WhatsApp linkedin:LinkedIn github:GitHub gmail:Gmail iphone:iPhone iphones:iPhones ipad:iPad ipads:iPads imac:iMac icloud:iCloud macbook:MacBook macos:macOS';

/** Words always written with a capital, by their lower case. Without ambiguous ones: polish, turkey, march, may. */
export const PROPER_NAMES: ReadonlyMap<string, string> = new Map([
  ...CAPITALIZED.trim()
    .split(/\s+/)
    .map((name) => [name, name[0]!.toUpperCase() + name.slice(1)] as const),
  ...WITH_OTHER_CAPITALS.split(' ').map((pair) => pair.split(':') as [string, string]),
]);
