/**
 * What a judge is asked: questions, each with the answers it may have and what each of them means. Keys are the
 * author's own words and may be anything, `__proto__` included, so that they stand in Maps.
 */
export type RubricQuestions = ReadonlyMap<string, RubricQuestion>;

export interface RubricQuestion {
  /** `boolean` is a choice of `yes` and `no`. */
  type: QuestionType;
  /** What is asked; null: the key says it. */
  question: string | null;
  /** What each answer means, by answer; at least two. */
  criteria: ReadonlyMap<string, string>;
}

export const QUESTION_TYPES = ['choice', 'boolean'] as const;
export type QuestionType = (typeof QUESTION_TYPES)[number];

/** The same as the API and the database have it. */
export type PlainQuestions = Record<string, PlainQuestion>;

export interface PlainQuestion {
  type: QuestionType;
  question?: string;
  /** May be left out of a `boolean`. */
  criteria?: Record<string, string>;
}

/** Where the author of a `boolean` did not say what the answers mean. */
const YES_AND_NO: [string, string][] = [
  ['yes', 'It is so.'],
  ['no', 'It is not so, or nothing shows it.'],
];

export function readQuestions(plain: PlainQuestions): RubricQuestions {
  return new Map(
    Object.entries(plain).map(([key, { type, question, criteria }]) => {
      const meanings = new Map(type === 'boolean' ? YES_AND_NO : []);
      for (const [answer, meaning] of Object.entries(criteria ?? {})) meanings.set(answer, meaning);
      return [key, { type, question: question ?? null, criteria: meanings }];
    }),
  );
}

/** With the criteria that a `boolean` left out. */
export function plainQuestions(questions: RubricQuestions): PlainQuestions {
  return Object.fromEntries(
    [...questions].map(([key, { type, question, criteria }]) => [
      key,
      { type, ...(question !== null && { question }), criteria: Object.fromEntries(criteria) },
    ]),
  );
}

/** What is judged: as the judge reads it, and the texts its quotes may come from. */
export interface Candidate {
  content: unknown;
  texts: readonly string[];
}

export function candidateOfOutput(output: string): Candidate {
  return { content: { output }, texts: [output] };
}

export interface SpokenLine {
  /** Absent if unknown. */
  speaker?: string;
  /** Seconds. */
  start?: number;
  text: string;
}

export function candidateOfTranscript(lines: readonly SpokenLine[]): Candidate {
  return { content: { transcript: lines }, texts: lines.map(({ text }) => text) };
}

/** Of a tool, by the assistant. */
export interface SpokenCall {
  name: string;
  /** As the model wrote them. */
  arguments: string;
}

interface SpokenMessage {
  role: string;
  content: string;
  calls?: readonly SpokenCall[];
}

export function candidateOfMessages(messages: readonly SpokenMessage[]): Candidate {
  const shown = messages.map(({ role, content, calls = [] }) => ({
    role,
    content,
    ...(calls.length > 0 && { tool_calls: calls }),
  }));
  const texts = messages.flatMap(({ content, calls = [] }) => [
    content,
    ...calls.flatMap(({ name, arguments: written }) => [name, written]),
  ]);
  return { content: { messages: shown }, texts };
}

/** How one question was answered. */
export interface QuestionResult {
  type: QuestionType;
  /** One of the criteria. */
  answer: string;
  reason: string;
  /**
   * 0 to 1. Of one sample: what the judge says of itself; of several: the share that gave this answer. Half of that when
   * the judge quoted, and nothing of it occurs in what it judged.
   */
  confidence: number;
  /** Quotes, as they stand in what was judged. */
  evidence: string[];
}
