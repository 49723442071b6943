import { SaxesParser } from 'saxes';
import {
  EMPHASIS_LEVELS,
  emphasis,
  nested,
  PITCH_FORMS,
  pitchSemitones,
  RATE_FORMS,
  rateFactor,
  VOLUME_FORMS,
  volumeDb,
} from './prosody.ts';
import { DATE_FORMATS, INTERPRETATIONS, type Interpretation } from './say-as.ts';
import { NEUTRAL_PROSODY, type Prosody, ScriptError } from './script.ts';

/** What SSML says: stretches of text of one prosody, in the order they are spoken. */
export interface SsmlDocument {
  /** Of `xml:lang`, as it is written; null without. */
  language: string | null;
  passages: SsmlPassage[];
}

export interface SsmlPassage {
  spans: SsmlSpan[];
  prosody: Prosody;
  pauseAfterMs: number;
}

export interface SsmlSpan {
  text: string;
  /** How it is to be read; null where that is up to us. */
  reading: SsmlReading | null;
}

export type SsmlReading =
  | { kind: 'say-as'; interpretation: Interpretation }
  | { kind: 'sub'; alias: string }
  | { kind: 'phoneme'; ipa: string };

/** Whether the text is meant as SSML: a declaration of XML counts as well. */
export function isSsml(text: string): boolean {
  return /^\s*(?:<\?xml\s|<speak(?=[\s/>]|$))/.test(text);
}

/** Reads the subset of SSML 1.1 (W3C Recommendation of 7 September 2010) that docs/speech-text.md lists. @throws ScriptError */
export function parseSsml(text: string): SsmlDocument {
  const parser = new SaxesParser();
  let position = { line: 1, column: 1 };
  const reader = new SsmlReader(() => `line ${position.line}, column ${position.column}`);
  const remember = (length: number) => {
    position = { line: parser.line, column: Math.max(1, parser.column - length) };
  };
  parser.on('error', (error) => {
    throw new ScriptError(`not well-formed SSML: ${bareAmpersand(text) ?? readable(error.message)}`);
  });
  // Its name was read, and the character behind it.
  parser.on('opentagstart', (tag) => remember(tag.name.length + 1));
  parser.on('doctype', () => {
    remember(0);
    reader.refuse('a document type declaration is not allowed');
  });
  parser.on('processinginstruction', () => {
    remember(0);
    reader.refuse('processing instructions are not allowed');
  });
  parser.on('opentag', (tag) => reader.open(tag.name, new Map(Object.entries(tag.attributes))));
  parser.on('closetag', (tag) => reader.close(tag.name));
  parser.on('text', (written) => reader.text(written));
  parser.on('cdata', (written) => reader.text(written));
  parser.write(text).close();
  return reader.document;
}

/** `1:25: unclosed tag.` */
function readable(message: string): string {
  return message.replace(/^(\d+):(\d+): /, 'line $1, column $2: ').replace(/\.$/, '');
}

/** The parser goes on to the next semicolon and complains of something else. */
function bareAmpersand(text: string): string | null {
  const at = text.search(/&(?!(?:amp|lt|gt|quot|apos|#\d+|#x[\da-f]+);)/i);
  if (at < 0) return null;
  const lines = text.slice(0, at).split('\n');
  return `line ${lines.length}, column ${lines.at(-1)!.length + 1}: & is written &amp;, and there are no entities but amp, lt, gt, quot and apos`;
}

const ALLOWED = 'speak, p, s, break, say-as, prosody, emphasis, phoneme and sub';
const DEEPEST = 20;
const LONGEST_BREAK_MS = 10_000;
/** Of all breaks, so that a short text is not minutes of silence. */
const LONGEST_BREAKS_MS = 120_000;
const LONGEST_ALIAS = 250;
/** Beyond what the engine makes of the end of a sentence. */
const PARAGRAPH_PAUSE_MS = 400;

class SsmlReader {
  readonly document: SsmlDocument = { language: null, passages: [] };
  readonly #position: () => string;
  readonly #open: { name: string; prosody: Prosody }[] = [];
  #reading: SsmlReading | null = null;
  #breaksMs = 0;
  /** The next text belongs to another passage. */
  #isCut = true;

  constructor(position: () => string) {
    this.#position = position;
  }

  open(name: string, attributes: Map<string, string>): void {
    if (this.#open.length === 0 && name !== 'speak') this.refuse('SSML begins with <speak>');
    if (this.#open.length >= DEEPEST) this.refuse(`elements are nested more than ${DEEPEST} deep`);
    if (this.#reading !== null) this.refuse(`<${this.#open.at(-1)!.name}> takes text alone, and no <${name}>`);
    const inner = this.#inner(name, attributes);
    if (inner !== null || name === 'p' || name === 's') this.#isCut = true;
    this.#open.push({ name, prosody: nested(this.#prosody, inner ?? {}) });
  }

  close(name: string): void {
    this.#open.pop();
    this.#reading = null;
    if (name === 'prosody' || name === 'emphasis' || name === 'p' || name === 's') this.#isCut = true;
    if (name === 'p') this.#pause(PARAGRAPH_PAUSE_MS);
  }

  text(written: string): void {
    if (this.#open.at(-1)?.name === 'break' && written.trim() !== '') this.refuse('<break> has no text');
    if (this.#open.length === 0 || written === '') return;
    let rest = written;
    if (this.#isCut) {
      const last = this.document.passages.at(-1);
      // A comma behind the end of an element belongs to the word in it.
      const marks = last?.pauseAfterMs === 0 ? (/^[.,;:!?…)\]"'”’»।]+/u.exec(rest)?.[0] ?? '') : '';
      if (marks !== '' && this.#reading === null && !/(^|\s)$/u.test(last?.spans.at(-1)?.text ?? '')) {
        last!.spans.push({ text: marks, reading: null });
        rest = rest.slice(marks.length);
      }
      if (rest.trim() === '') return;
      this.document.passages.push({ spans: [], prosody: this.#prosody, pauseAfterMs: 0 });
      this.#isCut = false;
    }
    this.document.passages.at(-1)!.spans.push({ text: rest, reading: this.#reading });
  }

  refuse(problem: string): never {
    throw new ScriptError(`SSML at ${this.#position()}: ${problem}`);
  }

  get #prosody(): Prosody {
    return this.#open.at(-1)?.prosody ?? NEUTRAL_PROSODY;
  }

  /** Reads the attributes. Answers the prosody inside, null where the element has none. */
  #inner(name: string, attributes: Map<string, string>): Partial<Prosody> | null {
    switch (name) {
      case 'speak':
        if (this.#open.length > 0) this.refuse('<speak> is the outermost element and stands there once');
        this.#openSpeak(attributes);
        return null;
      case 'p':
      case 's':
        this.#take(name, attributes, []);
        return null;
      case 'break':
        this.#break(this.#take(name, attributes, ['time', 'strength']));
        return null;
      case 'prosody':
        return this.#prosodyOf(this.#take(name, attributes, ['rate', 'pitch', 'volume']));
      case 'emphasis': {
        const { level = 'moderate' } = this.#take(name, attributes, ['level']);
        return emphasis(level) ?? this.#refuseValue('level', level, EMPHASIS_LEVELS);
      }
      case 'say-as':
        this.#reading = this.#sayAs(this.#take(name, attributes, ['interpret-as', 'format', 'detail']));
        return null;
      case 'sub': {
        const { alias } = this.#take(name, attributes, ['alias']);
        if (alias === undefined || alias.trim() === '') this.refuse('<sub> needs an alias, such as alias="Limited"');
        this.#reading = { kind: 'sub', alias: this.#bounded('alias', alias) };
        return null;
      }
      case 'phoneme':
        this.#reading = this.#phoneme(this.#take(name, attributes, ['alphabet', 'ph']));
        return null;
      default:
        this.refuse(`<${name}> is not supported; there are ${ALLOWED}`);
    }
  }

  #openSpeak(attributes: Map<string, string>): void {
    for (const [name, value] of attributes) {
      if (name === 'xml:lang') {
        if (!/^[a-z]{2,3}(-[a-z\d]{1,8}){0,4}$/i.test(value))
          this.#refuseValue(name, value, 'a language such as en-IN');
        this.document.language = value.toLowerCase();
      } else if (name === 'version') {
        if (value !== '1.0' && value !== '1.1') this.#refuseValue(name, value, '1.0 or 1.1');
      } else if (name !== 'xmlns' && !name.startsWith('xmlns:') && name !== 'xsi:schemaLocation') {
        this.refuse(`<speak> has no attribute ${name}; there are version, xml:lang and xmlns`);
      }
    }
  }

  #break({ time, strength }: Record<string, string | undefined>): void {
    const ms = time === undefined ? this.#strength(strength ?? 'medium') : this.#milliseconds(time);
    this.#breaksMs += ms;
    if (this.#breaksMs > LONGEST_BREAKS_MS) this.refuse(`breaks add up to more than ${LONGEST_BREAKS_MS / 1000} s`);
    if (ms > 0) this.#pause(ms);
  }

  #strength(strength: string): number {
    return STRENGTHS_MS.get(strength) ?? this.#refuseValue('strength', strength, [...STRENGTHS_MS.keys()].join(', '));
  }

  #milliseconds(time: string): number {
    const match = /^\+?(\d{1,6}(?:\.\d{1,6})?|\.\d{1,6})(ms|s)$/.exec(time);
    if (match === null) this.#refuseValue('time', time, 'seconds or milliseconds such as 0.5s or 500ms');
    const ms = Math.round(Number(match[1]) * (match[2] === 's' ? 1000 : 1));
    return ms <= LONGEST_BREAK_MS ? ms : this.#refuseValue('time', time, 'at most 10s');
  }

  /** Behind what there is, or alone. */
  #pause(ms: number): void {
    this.#isCut = true;
    const last = this.document.passages.at(-1);
    if (last !== undefined && last.pauseAfterMs + ms <= LONGEST_BREAK_MS) last.pauseAfterMs += ms;
    else this.document.passages.push({ spans: [], prosody: this.#prosody, pauseAfterMs: ms });
  }

  #prosodyOf({ rate, pitch, volume }: Record<string, string | undefined>): Partial<Prosody> {
    return {
      ...(rate !== undefined && { rate: rateFactor(rate.trim()) || this.#refuseValue('rate', rate, RATE_FORMS) }),
      ...(pitch !== undefined && {
        pitchSemitones: pitchSemitones(pitch.trim()) ?? this.#refuseValue('pitch', pitch, PITCH_FORMS),
      }),
      ...(volume !== undefined && {
        volumeDb: volumeDb(volume.trim()) ?? this.#refuseValue('volume', volume, VOLUME_FORMS),
      }),
    };
  }

  #sayAs({ 'interpret-as': as, format = null }: Record<string, string | null | undefined>): SsmlReading {
    const forms = INTERPRETATIONS.join(', ');
    if (as === undefined || as === null) this.refuse(`<say-as> needs interpret-as: ${forms}`);
    if (!(INTERPRETATIONS as readonly string[]).includes(as)) this.#refuseValue('interpret-as', as, forms);
    const ofDate = as === 'date' ? format : null;
    if (ofDate !== null && !(DATE_FORMATS as readonly string[]).includes(ofDate)) {
      this.#refuseValue('format', ofDate, DATE_FORMATS.join(', '));
    }
    return { kind: 'say-as', interpretation: { as, format: ofDate } };
  }

  #phoneme({ alphabet = 'ipa', ph }: Record<string, string | undefined>): SsmlReading {
    if (alphabet !== 'ipa') this.#refuseValue('alphabet', alphabet, 'ipa');
    const ipa = this.#bounded('ph', (ph ?? '').normalize('NFC').trim().replace(/\s+/g, ' '));
    // Letters, diacritics, stress, length and tone; nothing an engine could take for a command.
    if (!/^[\p{L}\p{M}\p{Lm}\p{Sk}ˈˌːˑ.|‖‿ʼ'ˑ↗↘ ]+$/u.test(ipa)) this.#refuseValue('ph', ipa, 'IPA such as ˈhɛloʊ');
    return { kind: 'phoneme', ipa };
  }

  #bounded(name: string, value: string): string {
    if (value.length > LONGEST_ALIAS) this.refuse(`${name} is longer than ${LONGEST_ALIAS} characters`);
    return value;
  }

  #take(
    element: string,
    attributes: Map<string, string>,
    allowed: readonly string[],
  ): Record<string, string | undefined> {
    for (const name of attributes.keys()) {
      if (allowed.includes(name)) continue;
      if (name === 'xml:lang') this.refuse(`xml:lang stands on <speak>: a text is spoken in one language`);
      this.refuse(
        `<${element}> has no attribute ${name}; ${allowed.length > 0 ? `there are ${allowed.join(', ')}` : 'it has none'}`,
      );
    }
    return Object.fromEntries(attributes);
  }

  #refuseValue(name: string, value: string, allowed: string): never {
    const shown = value.length > 40 ? `${value.slice(0, 40)}…` : value;
    this.refuse(`${name}="${shown}" is not supported; allowed: ${allowed}`);
  }
}

const STRENGTHS_MS = new Map([
  ['none', 0],
  ['x-weak', 100],
  ['weak', 250],
  ['medium', 500],
  ['strong', 800],
  ['x-strong', 1200],
]);
