import { WHISPER_LANGUAGES } from '../engines/whisper-languages.ts';
import { describeLanguage } from '../languages.ts';
import { CATALOGUE } from '../models/catalogue.ts';
import type { EngineName, RecognitionEngine, RecognizerDescription } from '../recognizer.ts';

export interface Capability {
  engine: RecognitionEngine;
  description: RecognizerDescription;
}

/** A model for an utterance, with the language to recognise. */
export interface Candidate extends Capability {
  /** Null: detected by the engine. */
  language: string | null;
  /** Languages that detection may return; null for any. */
  allowed: readonly string[] | null;
}

export type PreferredEngine = 'auto' | 'pocketsphinx' | 'sherpa-onnx' | 'openai';

export interface RouteOptions {
  /** ISO 639-1 codes that may be spoken; null for any. */
  languages: readonly string[] | null;
  preferred: PreferredEngine;
  isLive: boolean;
  capabilities: readonly Capability[];
}

export type Route =
  | { type: 'found'; candidates: readonly [Candidate, ...Candidate[]] }
  | { type: 'unsupported'; message: string };

/**
 * Ranks the models for a stream, best first: only those that support and distinguish all its languages, first the
 * preferred engine, then the default order. Later ones take over when the first fails.
 */
export function findRoute(options: RouteOptions): Route {
  const { languages, capabilities } = options;
  const candidates = capabilities
    .filter(({ description }) => doesAll(description, languages))
    .toSorted((a, b) => compareRanks(rankOf(a, options), rankOf(b, options)))
    .map((capability) => candidateOf(capability, languages));
  const [best, ...others] = candidates;
  if (best === undefined) return { type: 'unsupported', message: explainUnsupported(options) };
  // Without detection, all candidates must assume the same language.
  return { type: 'found', candidates: [best, ...others.filter(({ language }) => language === best.language)] };
}

export function modelNameOf({ description }: Capability): string {
  return `${description.engine}/${description.model}`;
}

/** Operators install models and servers because they are better than the built-in engine. */
const USUAL_ORDER: readonly EngineName[] = ['sherpa-onnx', 'openai', 'pocketsphinx-native', 'pocketsphinx'];

function doesAll({ languages: known, detectsLanguage }: RecognizerDescription, languages: RouteOptions['languages']) {
  if (languages === null) return known.length > 0;
  return languages.every((language) => known.includes(language)) && (languages.length === 1 || detectsLanguage);
}

/** Lower is better, compared element by element. */
function rankOf({ description }: Capability, { languages, preferred, isLive }: RouteOptions): readonly number[] {
  const { engine, detectsLanguage, streams, languages: known } = description;
  return [
    languages !== null || detectsLanguage ? 0 : 1,
    preferred !== 'auto' && engine.startsWith(preferred) ? 0 : 1,
    USUAL_ORDER.indexOf(engine),
    // Whole-utterance models are more accurate, but have no interim results.
    streams === isLive ? 0 : 1,
    languages !== null || known.includes('en') ? 0 : 1,
    known.length,
  ];
}

function compareRanks(a: readonly number[], b: readonly number[]): number {
  const at = a.findIndex((value, index) => value !== b[index]);
  return at === -1 ? 0 : a[at]! - b[at]!;
}

function candidateOf({ engine, description }: Capability, languages: RouteOptions['languages']): Candidate {
  const possible = languages ?? description.languages;
  const isOpen = possible.length > 1 && description.detectsLanguage;
  const usual = possible.includes('en') ? 'en' : possible[0]!;
  return { engine, description, language: isOpen ? null : usual, allowed: languages };
}

function explainUnsupported({ languages, capabilities }: RouteOptions): string {
  const understood = new Set(capabilities.flatMap(({ description }) => description.languages));
  const unknown = (languages ?? []).filter((language) => !understood.has(language));
  const wanted =
    unknown.length > 0
      ? `No engine that understands ${named(unknown)} is installed.`
      : understood.size > 0
        ? `No installed model distinguishes ${named(languages ?? [])}. Request one of them.`
        : 'No engine for speech is installed.';
  const now = understood.size > 0 ? ` Understood now: ${named([...understood].sort())}.` : '';
  return (
    `${wanted} sherpa-onnx would, with ${namedModels(languages ?? [])}; so would an OpenAI-compatible server that ` +
    `knows it (STT_BASE_URL).${now}`
  );
}

/** Models of the catalogue for these languages. The one with the fewest other languages is the best. */
function namedModels(languages: readonly string[]): string {
  const [best] = CATALOGUE.filter(({ kind }) => kind === 'stt')
    .map((model) => ({ name: model.name, known: model.languages.length === 0 ? WHISPER_LANGUAGES : model.languages }))
    .filter(({ known }) => languages.every((language) => known.includes(language)))
    .sort((a, b) => a.known.length - b.known.length);
  if (best === undefined) return 'a model for it in MODELS_DIR';
  return `a model such as ${best.name} (tandem models fetch ${best.name})`;
}

function named(codes: readonly string[]): string {
  return codes.map(describeLanguage).join(', ');
}
