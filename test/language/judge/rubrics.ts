import type { JudgeRequest } from '../../../language/judge/evaluate.ts';
import { candidateOfOutput, type PlainQuestions, readQuestions } from '../../../language/judge/rubric.ts';
import type { CompletionRequest } from '../../../language/llm.ts';

export const QUESTIONS: PlainQuestions = {
  greeting: { type: 'choice', criteria: { warm: 'By name.', cold: 'Without one.', none: 'Not at all.' } },
  solved: { type: 'boolean', question: 'Was the problem solved?' },
};

export function judgeRequest(overrides: Partial<JudgeRequest> = {}): JudgeRequest {
  return {
    questions: readQuestions(QUESTIONS),
    candidate: candidateOfOutput('Good morning, Asha! Your parcel is on its way.'),
    input: null,
    context: null,
    model: 'tiny-1.0',
    contextTokens: 8_192,
    samples: 1,
    seed: 7,
    fence: '=== 0a1b2c ===',
    onBehalfOf: 'a workspace',
    signal: new AbortController().signal,
    ...overrides,
  };
}

/** A schema-conforming model answer; `answers` maps each question key to `answer` and other fields. */
export function answered(
  request: CompletionRequest,
  answers: Record<string, object>,
  summary = 'It is polite.',
): string {
  const posed = posedIn(request);
  const given = posed.flatMap(({ name, question }) => {
    const key = Object.keys(answers).find((one) => question === one || question.startsWith(`${one}: `));
    if (key === undefined) return [];
    return [[name, { reason: 'It says so.', evidence: [], confidence: 0.9, ...answers[key] }] as const];
  });
  return JSON.stringify({ ...Object.fromEntries(given), summary });
}

export interface PosedLine {
  name: string;
  question: string;
  answers: { answer: string; means: string }[];
}

export function posedIn({ messages }: CompletionRequest): PosedLine[] {
  const system = messages[0]!.content!;
  return system
    .slice(system.indexOf('Rubric, one question a line:'))
    .split('\n')
    .slice(1)
    .map((line) => JSON.parse(line));
}

/** The answer of a model that always prefers the first option. */
export function firstAnswers(request: CompletionRequest): string {
  const answers = posedIn(request).map(({ name, answers: [first] }) => [
    name,
    { reason: 'It came first.', evidence: [], answer: first!.answer, confidence: 0.8 },
  ]);
  return JSON.stringify({ ...Object.fromEntries(answers), summary: 'It is what it is.' });
}

export function isJudgement({ responseSchema }: CompletionRequest): boolean {
  return responseSchema?.name === 'judgement';
}
