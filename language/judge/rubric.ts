/** Questions of a rubric, by key. Keys are the author's text and may be anything, even `__proto__`, hence Maps. */
export type RubricQuestions = ReadonlyMap<string, RubricQuestion>;

export interface RubricQuestion {
  /** `boolean` is a choice of `yes` and `no`. */
  type: QuestionType;
  /** Text of the question; null: the key is the question. */
  question: string | null;
  /** Meaning of each answer, at least two. */
  criteria: ReadonlyMap<string, string>;
}

export const QUESTION_TYPES = ['choice', 'boolean'] as const;
export type QuestionType = (typeof QUESTION_TYPES)[number];

/** Questions as in the API and the database. */
export type PlainQuestions = Record<string, PlainQuestion>;

export interface PlainQuestion {
  type: QuestionType;
  question?: string;
  /** Optional for a `boolean`. */
  criteria?: Record<string, string>;
}

/** Criteria of a `boolean` whose author gave none. */
const YES_AND_NO: [string, string][] = [
  ['yes', 'It is so.'],
  ['no', 'It is not so, or nothing shows it.'],
];

/** Converts from the API's form. Adds the default criteria of a `boolean`. */
export function readQuestions(plain: PlainQuestions): RubricQuestions {
  return new Map(
    Object.entries(plain).map(([key, { type, question, criteria }]) => {
      const meanings = new Map(type === 'boolean' ? YES_AND_NO : []);
      for (const [answer, meaning] of Object.entries(criteria ?? {})) meanings.set(answer, meaning);
      return [key, { type, question: question ?? null, criteria: meanings }];
    }),
  );
}

/** Converts to the API's form, including the default criteria of a `boolean`. */
export function plainQuestions(questions: RubricQuestions): PlainQuestions {
  return Object.fromEntries(
    [...questions].map(([key, { type, question, criteria }]) => [
      key,
      { type, ...(question !== null && { question }), criteria: Object.fromEntries(criteria) },
    ]),
  );
}

/** The material to judge. */
export interface Candidate {
  /** For the prompt, as JSON. */
  content: unknown;
  /** Texts that the judge may quote. */
  texts: readonly string[];
}

export function candidateOfOutput(output: string): Candidate {
  return { content: { output }, texts: [output] };
}

export interface TranscriptLine {
  /** Absent if unknown. */
  speaker?: string;
  /** Seconds since the start of the call. */
  start?: number;
  text: string;
}

export function candidateOfTranscript(lines: readonly TranscriptLine[]): Candidate {
  return { content: { transcript: lines }, texts: lines.map(({ text }) => text) };
}

/** A tool call of the judged assistant. */
export interface ToolCallText {
  name: string;
  /** As the model wrote them. */
  arguments: string;
}

interface JudgedMessage {
  role: string;
  content: string;
  calls?: readonly ToolCallText[];
}

export function candidateOfMessages(messages: readonly JudgedMessage[]): Candidate {
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

/** The judge's answer to one question. */
export interface QuestionResult {
  type: QuestionType;
  /** One of the criteria. */
  answer: string;
  reason: string;
  /**
   * 0 to 1. For one sample: the judge's own confidence; for several: the share that gave this answer. Halved if the
   * judge quoted and no quote occurs in the material.
   */
  confidence: number;
  /** Quotes, as they occur in the material. */
  evidence: string[];
}
