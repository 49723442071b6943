import type { EngineVoice } from '../../synthesizer.ts';
import { kokoroSpeaker } from '../kokoro-speakers.ts';
import type { SpeechServer } from './speech-server.ts';

/** Voices of a speech server: those it lists (Kokoro-FastAPI, Speaches), else OpenAI's. */
export class SpeechVoices {
  readonly #server: SpeechServer;
  #asking: Promise<readonly EngineVoice[]> | null = null;
  #askAgainAt = 0;

  constructor(server: SpeechServer) {
    this.#server = server;
  }

  /** Queried once, and again only if the server was unreachable. */
  list(): Promise<readonly EngineVoice[]> {
    if (this.#asking === null || performance.now() >= this.#askAgainAt) {
      this.#askAgainAt = Number.POSITIVE_INFINITY;
      this.#asking = this.#ask();
    }
    return this.#asking;
  }

  async #ask(): Promise<readonly EngineVoice[]> {
    const { isSure, value } = await this.#server.get('/audio/voices');
    if (!isSure) this.#askAgainAt = performance.now() + ASK_AGAIN_AFTER_MS;
    const listed = voicesIn(value);
    const { model } = this.#server;
    if (listed.length > 0) return listed.map((voice) => ({ ...voice, model, clones: false }));
    return OPENAI_VOICES.map(([name, gender]) => ({ name, model, language: USUAL_LANGUAGE, gender, clones: false }));
  }
}

const ASK_AGAIN_AFTER_MS = 60_000;
const MOST_VOICES = 2000;
/** These voices speak the language of the text. */
const USUAL_LANGUAGE = 'en-us';

/** Genders are our judgement; OpenAI publishes none. */
const OPENAI_VOICES: readonly (readonly [name: string, gender: EngineVoice['gender']])[] = [
  ['alloy', null],
  ['ash', 'male'],
  ['ballad', 'male'],
  ['coral', 'female'],
  ['echo', 'male'],
  ['fable', null],
  ['nova', 'female'],
  ['onyx', 'male'],
  ['sage', 'female'],
  ['shimmer', 'female'],
  ['verse', 'male'],
];

/** `{"voices": [...]}` of names, or of objects with a name. */
function voicesIn(answer: unknown): Pick<EngineVoice, 'name' | 'language' | 'gender'>[] {
  const list = Array.isArray(answer) ? answer : fieldOf(answer, ['voices', 'data']);
  if (!Array.isArray(list)) return [];
  const voices = list.slice(0, MOST_VOICES).flatMap((entry: unknown) => {
    const name = typeof entry === 'string' ? entry : fieldOf(entry, ['id', 'voice_id', 'name', 'voice']);
    if (typeof name !== 'string' || !VOICE_NAME.test(name)) return [];
    const speaker = kokoroSpeaker(name);
    const reported = fieldOf(entry, ['language', 'lang', 'locale']);
    const language = typeof reported === 'string' ? toLanguageTag(reported) : null;
    const gender = fieldOf(entry, ['gender']);
    return {
      name,
      language: language ?? speaker?.language ?? USUAL_LANGUAGE,
      gender: gender === 'female' || gender === 'male' ? gender : (speaker?.gender ?? null),
    };
  });
  return [...new Map(voices.map((voice) => [voice.name, voice])).values()];
}

const VOICE_NAME = /^[^\p{C}\s](?:[^\p{C}]{0,126}[^\p{C}\s])?$/u;

function fieldOf(value: unknown, names: readonly string[]): unknown {
  if (typeof value !== 'object' || value === null) return undefined;
  const name = names.find((candidate) => Object.hasOwn(value, candidate));
  return name === undefined ? undefined : (value as Record<string, unknown>)[name];
}

function toLanguageTag(text: string): string | null {
  const tag = text.toLowerCase().replaceAll('_', '-');
  return /^[a-z]{2,3}(-[a-z0-9]{2,8}){0,3}$/.test(tag) ? tag : null;
}
