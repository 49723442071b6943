/**
 * Cuts a text into what is spoken at once: sentences, and parts of long ones. The first is as short as the text allows,
 * because whoever listens waits for it. Words stay whole, unless they are longer than any clause; joined with spaces the
 * clauses are the text, its white space made one.
 */
export function clausesOf(text: string): string[] {
  const words = text.split(/\s+/u).flatMap(piecesOf);
  const clauses: string[] = [];
  let clause: string[] = [];
  let length = 0;
  for (const word of words) {
    clause.push(word);
    length += word.length + 1;
    const isFirst = clauses.length === 0;
    const ends =
      SENTENCE_END.test(word) ||
      (CLAUSE_END.test(word) && (isFirst ? clause.length >= FIRST_WORDS : length >= LONG_CLAUSE)) ||
      length >= (isFirst ? FIRST_LENGTH : LONGEST_CLAUSE);
    if (!ends) continue;
    clauses.push(clause.join(' '));
    clause = [];
    length = 0;
  }
  if (clause.length > 0) clauses.push(clause.join(' '));
  return clauses;
}

/** A thousand smileys, or a script without spaces, is a word too. None is empty. */
function piecesOf(word: string): string[] {
  if (word === '') return [];
  return word.length > LONGEST_CLAUSE ? word.match(PIECE)! : [word];
}

/** With what may close after it. */
const SENTENCE_END = /[.!?…。！？।॥؟][)\]}"'”’»]*$/u;
const CLAUSE_END = /[,;:،、，；：–—][)\]}"'”’»]*$/u;
/** Fewer words and a comma are not worth a break: "Well, ...". */
const FIRST_WORDS = 3;
const FIRST_LENGTH = 90;
const LONG_CLAUSE = 80;
const LONGEST_CLAUSE = 250;
/** Of code points: none is torn apart. */
const PIECE = /.{1,60}/gsu;
