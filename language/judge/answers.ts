import { plainForm } from './plain-form.ts';
import type { PosedQuestion } from './prompt.ts';

/** A model's valid answer to one question. */
export interface ModelAnswer {
  /** One of the criteria. */
  answer: string;
  reason: string;
  /** 0 to 1. */
  confidence: number;
  /** Quotes as the model claims them, not verified. */
  quotes: string[];
}

export interface ModelAnswers {
  /** By key, without invalid answers. */
  answers: Map<string, ModelAnswer>;
  summary: string;
}

const LONGEST_REASON = 2_000;
const LONGEST_QUOTE = 1_000;
const MOST_QUOTES = 5;
/** Keys have at most 100 characters. */
const LONGEST_ANSWER = 400;

/** Parses a model's answers. Model output is untrusted: anything that violates the schema is ignored. */
export function readAnswers(text: string, posed: readonly PosedQuestion[]): ModelAnswers {
  const object = jsonObjectIn(text);
  const answers = new Map<string, ModelAnswer>();
  for (const question of posed) {
    const answer = readAnswer(field(object, question.name), question);
    if (answer !== null) answers.set(question.key, answer);
  }
  return { answers, summary: cleaned(field(object, 'summary'), LONGEST_REASON) };
}

function readAnswer(given: unknown, question: PosedQuestion): ModelAnswer | null {
  const answer = criterionOf(field(given, 'answer'), question);
  if (answer === null) return null;
  const confidence = field(given, 'confidence');
  const evidence = field(given, 'evidence');
  return {
    answer,
    reason: cleaned(field(given, 'reason'), LONGEST_REASON),
    confidence: typeof confidence === 'number' && Number.isFinite(confidence) ? clamped(confidence) : 0.5,
    quotes: (Array.isArray(evidence) ? evidence : [])
      .filter((quote) => typeof quote === 'string' && quote.length <= LONGEST_QUOTE)
      .slice(0, MOST_QUOTES),
  };
}

/**
 * Matches a criterion exactly, or ignoring case, spaces and Unicode form if that is unambiguous. Null if none matches.
 */
function criterionOf(given: unknown, { type, criteria }: PosedQuestion): string | null {
  const said = saidAs(given, type);
  if (said === null) return null;
  if (criteria.has(said)) return said;
  const form = formOf(said);
  const alike = [...criteria.keys()].filter((key) => formOf(key) === form);
  return alike.length === 1 ? alike[0]! : null;
}

/** Models write `4` for the criterion "4", and `true` for "yes". Null for objects and the like. */
function saidAs(given: unknown, type: PosedQuestion['type']): string | null {
  if (type === 'boolean' && typeof given === 'boolean') return given ? 'yes' : 'no';
  return typeof given === 'string' || typeof given === 'number' ? String(given) : null;
}

function formOf(text: string): string {
  return plainForm(text.slice(0, LONGEST_ANSWER)).text.trim();
}

/** Models put fences and remarks around the JSON. */
function jsonObjectIn(text: string): unknown {
  const object = text.slice(text.indexOf('{'), text.lastIndexOf('}') + 1);
  try {
    return JSON.parse(object);
  } catch {
    return null;
  }
}

function field(object: unknown, name: string): unknown {
  if (typeof object !== 'object' || object === null || !Object.hasOwn(object, name)) return undefined;
  return (object as Record<string, unknown>)[name];
}

/** One line, safe to store and show. */
function cleaned(text: unknown, longest: number): string {
  if (typeof text !== 'string') return '';
  const line = text.replace(/[\p{Cc}\p{Zl}\p{Zp}\s]+/gu, ' ').trim();
  return line.slice(0, longest).toWellFormed();
}

function clamped(confidence: number): number {
  return Math.min(1, Math.max(0, confidence));
}
