import { SaxesParser } from 'saxes';
import { STRENGTHS, strengthMs, timeMs } from './breaks.ts';
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
import { DATE_FORMATS, INTERPRETATIONS } from './say-as.ts';
import { NEUTRAL_PROSODY, type Prosody, ScriptError, type VoiceWish } from './script.ts';
import { LONGEST_BREAK_MS, PassageBuilder, type SsmlDocument, type SsmlReading } from './ssml-document.ts';

/** Whether a text is SSML. Comments may precede it. An XML declaration or document type counts as well. */
export function isSsml(text: string): boolean {
  return /^\s*(?:<!--(?:(?!-->)[\s\S])*-->\s*)*<(?:\?xml\s|(?:!DOCTYPE\s+)?speak(?=[\s/>]|$))/.test(text);
}

/**
 * Parses the subset of SSML 1.1 (W3C Recommendation of 7 September 2010) in docs/speech-text.md. @throws ScriptError
 */
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
  // The parser has consumed the name and the next character.
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

/** Without this, the parser continues to the next semicolon and reports a misleading error. */
function bareAmpersand(text: string): string | null {
  const at = text.search(/&(?!(?:amp|lt|gt|quot|apos|#\d+|#x[\da-f]+);)/i);
  if (at < 0) return null;
  const lines = text.slice(0, at).split('\n');
  return `line ${lines.length}, column ${lines.at(-1)!.length + 1}: & is written &amp;, and there are no entities but amp, lt, gt, quot and apos`;
}

const ALLOWED = 'speak, p, s, break, say-as, prosody, emphasis, phoneme, sub, mark, lang and voice';
const DEEPEST = 20;
/** Limit of all breaks together, so that a short text does not become minutes of silence. */
const LONGEST_BREAKS_MS = 120_000;
const LONGEST_ALIAS = 250;
const LONGEST_MARK = 100;
const MOST_MARKS = 250;
/** Each may require a look-up of a custom voice. */
const MOST_VOICES = 50;
/** As in requests. */
const LONGEST_VOICE_NAME = 64;
/** Added to the engine's pause at the end of a sentence. */
const PARAGRAPH_PAUSE_MS = 400;

class SsmlReader {
  readonly #passages = new PassageBuilder();
  readonly document: SsmlDocument = { language: null, passages: this.#passages.passages, voices: [] };
  readonly #position: () => string;
  readonly #open: { name: string; prosody: Prosody; voice: number | null }[] = [];
  #reading: SsmlReading | null = null;
  #breaksMs = 0;
  #marks = 0;

  constructor(position: () => string) {
    this.#position = position;
  }

  open(name: string, attributes: Map<string, string>): void {
    if (this.#open.length === 0 && name !== 'speak') this.refuse('SSML begins with <speak>');
    if (this.#open.length >= DEEPEST) this.refuse(`elements are nested more than ${DEEPEST} deep`);
    const around = this.#open.at(-1)?.name ?? '';
    if (this.#reading !== null) this.refuse(`<${around}> takes text alone, and no <${name}>`);
    if (EMPTY.has(around)) this.refuse(`<${around}> is empty and takes no <${name}>`);
    const inner = this.#inner(name, attributes);
    if (CUTTING.has(name)) this.#passages.cut();
    const { prosody, voice } = this.#style;
    this.#open.push({ name, prosody: nested(prosody, inner?.prosody ?? {}), voice: inner?.voice ?? voice });
  }

  close(name: string): void {
    const { prosody, voice } = this.#style;
    this.#open.pop();
    this.#reading = null;
    if (CUTTING.has(name)) this.#passages.cut();
    if (name === 'p') this.#passages.pause(PARAGRAPH_PAUSE_MS, { prosody, voice });
    if (name === 'speak') this.#passages.end({ prosody, voice });
  }

  text(written: string): void {
    const around = this.#open.at(-1)?.name ?? '';
    if (EMPTY.has(around) && written.trim() !== '') this.refuse(`<${around}> has no text`);
    if (around === '' || written === '') return;
    this.#passages.text(written, { ...this.#style, reading: this.#reading });
  }

  refuse(problem: string): never {
    throw new ScriptError(`SSML at ${this.#position()}: ${problem}`);
  }

  get #style(): { prosody: Prosody; voice: number | null } {
    return this.#open.at(-1) ?? { prosody: NEUTRAL_PROSODY, voice: null };
  }

  /** Reads the attributes. Returns the element's effect; null for none. */
  #inner(name: string, attributes: Map<string, string>): { prosody?: Partial<Prosody>; voice?: number } | null {
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
        return { prosody: this.#prosodyOf(this.#take(name, attributes, ['rate', 'pitch', 'volume'])) };
      case 'emphasis': {
        const { level = 'moderate' } = this.#take(name, attributes, ['level']);
        return { prosody: emphasis(level) ?? this.#refuseValue('level', level, EMPHASIS_LEVELS) };
      }
      case 'mark':
        this.#mark(this.#take(name, attributes, ['name']));
        return null;
      case 'lang':
        return { voice: this.#lang(this.#take(name, attributes, ['xml:lang'])) };
      case 'voice':
        return { voice: this.#voice(this.#take(name, attributes, ['name', 'gender', 'language', 'languages'])) };
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
        this.document.language = this.#language(name, value);
      } else if (name === 'version') {
        if (value !== '1.0' && value !== '1.1') this.#refuseValue(name, value, '1.0 or 1.1');
      } else if (name !== 'xmlns' && !name.startsWith('xmlns:') && name !== 'xsi:schemaLocation') {
        this.refuse(`<speak> has no attribute ${name}; there are version, xml:lang and xmlns`);
      }
    }
  }

  #break({ time, strength = 'medium' }: Record<string, string | undefined>): void {
    const ms =
      time !== undefined
        ? this.#milliseconds(time)
        : (strengthMs(strength) ?? this.#refuseValue('strength', strength, STRENGTHS));
    this.#breaksMs += ms;
    if (this.#breaksMs > LONGEST_BREAKS_MS) this.refuse(`breaks add up to more than ${LONGEST_BREAKS_MS / 1000} s`);
    if (ms > 0) this.#passages.pause(ms, this.#style);
  }

  #mark({ name = '' }: Record<string, string | undefined>): void {
    if (name.trim() === '') this.refuse('<mark> needs a name, such as name="here"');
    if (name.length > LONGEST_MARK) this.refuse(`name is longer than ${LONGEST_MARK} characters`);
    this.#marks += 1;
    if (this.#marks > MOST_MARKS) this.refuse(`there are more than ${MOST_MARKS} marks`);
    this.#passages.mark(name);
  }

  #lang({ 'xml:lang': tag }: Record<string, string | undefined>): number {
    if (tag === undefined) this.refuse('<lang> needs xml:lang, such as xml:lang="hi-IN"');
    return this.#switchVoice({ name: null, language: this.#language('xml:lang', tag), gender: null });
  }

  #voice({
    name = null,
    gender = null,
    languages,
    language = languages,
  }: Record<string, string | null | undefined>): number {
    if (gender !== null && gender !== 'female' && gender !== 'male') {
      this.#refuseValue('gender', gender, 'female, male');
    }
    if (name !== null && (name.trim() === '' || name.length > LONGEST_VOICE_NAME)) {
      this.#refuseValue('name', name, `1 to ${LONGEST_VOICE_NAME} characters`);
    }
    const tag = language == null ? null : this.#language(languages == null ? 'language' : 'languages', language);
    if (name === null && gender === null && tag === null) this.refuse('<voice> needs a name, a language or a gender');
    return this.#switchVoice({ name: name?.trim() ?? null, language: tag, gender });
  }

  #switchVoice(wish: Pick<VoiceWish, 'name' | 'language' | 'gender'>): number {
    const { voices } = this.document;
    if (voices.length >= MOST_VOICES) this.refuse(`the voice changes more than ${MOST_VOICES} times`);
    return voices.push({ ...wish, outer: this.#style.voice, position: this.#position() }) - 1;
  }

  /** BCP 47 in lower case. */
  #language(attribute: string, tag: string): string {
    if (!/^[a-z]{2,3}(-[a-z\d]{1,8}){0,4}$/i.test(tag)) this.#refuseValue(attribute, tag, 'a language such as en-IN');
    return tag.toLowerCase();
  }

  #milliseconds(time: string): number {
    const ms = timeMs(time) ?? this.#refuseValue('time', time, 'seconds or milliseconds such as 0.5s or 500ms');
    return ms <= LONGEST_BREAK_MS ? ms : this.#refuseValue('time', time, 'at most 10s');
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
    // Letters, diacritics, stress, length and tone; nothing that an engine could take for a command.
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
      if (name === 'xml:lang') this.refuse('xml:lang belongs on <speak> or <lang>');
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

/** Elements whose edges end a passage. */
const CUTTING: ReadonlySet<string> = new Set(['p', 's', 'prosody', 'emphasis', 'lang', 'voice']);
const EMPTY: ReadonlySet<string> = new Set(['break', 'mark']);
