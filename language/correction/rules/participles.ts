/** Participles that take "has" after 's: "is been" is impossible. */
export const HAS_PARTICIPLES: ReadonlySet<string> = new Set(
  'been got gotten had become happened begun gone grown fallen forgotten arrived'.split(' '),
);

/** Participles after "have" and "had". Another word would be the object. */
export function isParticiple(word: string): boolean {
  return IRREGULAR.has(word) || HAS_PARTICIPLES.has(word) || (/[a-z]{2}ed$/.test(word) && !ENDING_SO.has(word));
}

const IRREGULAR = new Set(
  `seen done left made come taken given known shown told said sent found met read heard written spoken eaten paid put set kept
  lost won bought brought built caught chosen driven felt held thought understood won worn broken`.split(/\s+/),
);

const ENDING_SO = new Set(
  'need feed bleed proceed succeed exceed speed heed seed weed breed embed shed wed red bed'.split(' '),
);
