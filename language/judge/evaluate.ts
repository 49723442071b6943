import { TandemError } from '../../machines/errors.ts';
import type { LanguageModels, TokenUsage } from '../llm.ts';
import { type ModelAnswer, type ModelAnswers, readAnswers } from './answers.ts';
import { type QuoteFinder, quoteFinder } from './evidence.ts';
import { derivedSeed } from './option-order.ts';
import {
  answerSchema,
  dataOf,
  type Material,
  mostAnswerTokens,
  plainDataOf,
  poseQuestions,
  promptOf,
} from './prompt.ts';
import type { QuestionResult, RubricQuestions } from './rubric.ts';

export interface JudgeRequest extends Material {
  questions: RubricQuestions;
  /** Versioned id. */
  model: string;
  /** Limit of prompt and answer together; null if unknown. */
  contextTokens: number | null;
  /** How often the judge is asked, each time with the answers in another order; 1 to 5. */
  samples: number;
  /** Determines the orders of answers. */
  seed: number;
  /** A line that the candidate could not have guessed. */
  fence: string;
  /** The workspace. */
  onBehalfOf: string;
  signal: AbortSignal;
}

export interface Judgement {
  /** By key, in the order of the rubric; one for each question. */
  results: Map<string, QuestionResult>;
  summary: string;
  /** Sum over all requests. */
  usage: TokenUsage;
}

/**
 * Lets a model answer a rubric's questions about a candidate. The majority of samples wins; on a tie, the answer with
 * the higher confidence. A result is always one of the question's criteria.
 * @throws TandemError `JUDGE_ANSWER_INVALID` if a question has no valid answer after two requests,
 * `CONTEXT_LENGTH_EXCEEDED`, errors of `LanguageModels.complete`; the signal's reason
 */
export async function evaluate(models: Pick<LanguageModels, 'complete'>, request: JudgeRequest): Promise<Judgement> {
  const data = await dataOf(request);
  requireRoom(request, data);
  const finding = quoteFinder(request.candidate.texts);
  const oneFailed = new AbortController();
  const signal = AbortSignal.any([request.signal, oneFailed.signal]);
  const asking = Array.from({ length: request.samples }, (_, index) =>
    askFor(models, request, { data, index, signal }),
  );
  let samples: Sample[];
  try {
    samples = await Promise.all(asking);
  } catch (error) {
    oneFailed.abort(error);
    await Promise.allSettled(asking);
    throw error;
  }
  const finder = await finding;
  const results = new Map<string, QuestionResult>();
  for (const [key, { type }] of request.questions) {
    const given = samples.map(({ answers }) => answers.get(key)!);
    results.set(key, { type, ...(await concluded(given, finder)) });
  }
  return { results, summary: summaryOf(samples, results), usage: total(samples.map(({ usage }) => usage)) };
}

/** Estimates the maximum of tokens, for the wallet hold. */
export function tokensToHold(request: Pick<JudgeRequest, 'questions' | 'samples' | keyof Material>): number {
  const { questions, samples } = request;
  const prompt = Math.ceil(promptBytes(questions, plainDataOf(request)) / BYTES_PER_TOKEN.usual);
  return samples * (prompt + mostAnswerTokens(questions.size));
}

/** A token hardly ever has fewer bytes than `usual`, and in a whole prompt never more than `most` on average. */
const BYTES_PER_TOKEN = { usual: 3, most: 8 };

function promptBytes(questions: RubricQuestions, data: string): number {
  return bytesOf(promptOf(poseQuestions(questions, 0), { data, fence: '' }));
}

function bytesOf(messages: readonly { content: string }[]): number {
  return messages.reduce((bytes, { content }) => bytes + Buffer.byteLength(content), 0);
}

/**
 * Rejects what certainly exceeds the context; the engine checks the rest. Never truncates: half a conversation would be
 * judged as if it were whole.
 */
function requireRoom({ questions, contextTokens }: JudgeRequest, data: string): void {
  if (contextTokens === null) return;
  const least = Math.ceil(promptBytes(questions, data) / BYTES_PER_TOKEN.most);
  if (least <= contextTokens) return;
  const message = `This takes at least ${least} tokens; the model reads ${contextTokens}. Judge less at a time, or choose another model.`;
  throw new TandemError('CONTEXT_LENGTH_EXCEEDED', message, { details: { context_tokens: contextTokens } });
}

interface Sample extends ModelAnswers {
  usage: TokenUsage;
}

const ATTEMPTS = 2;

/** Asks for one answer to each question, and once more for only the unanswered ones. */
async function askFor(
  models: Pick<LanguageModels, 'complete'>,
  { questions, model, samples, seed, fence, contextTokens, onBehalfOf }: JudgeRequest,
  { data, index, signal }: { data: string; index: number; signal: AbortSignal },
): Promise<Sample> {
  const answers = new Map<string, ModelAnswer>();
  const usages: TokenUsage[] = [];
  let summary = '';
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const missing = new Map([...questions].filter(([key]) => !answers.has(key)));
    const sampleSeed = derivedSeed(seed, index * ATTEMPTS + attempt);
    const posed = poseQuestions(missing, sampleSeed);
    const messages = promptOf(posed, { data, fence });
    const completion = await models.complete({
      model,
      messages,
      responseSchema: { name: 'judgement', schema: answerSchema(posed) },
      // Several samples at temperature 0 would all be the same.
      temperature: samples === 1 ? 0 : 0.6,
      seed: sampleSeed,
      maxTokens: mostTokens(messages, { questions: posed.length, contextTokens }),
      onBehalfOf,
      signal,
    });
    usages.push(completion.usage);
    const read = readAnswers(completion.text, posed);
    for (const [key, answer] of read.answers) answers.set(key, answer);
    summary ||= read.summary;
    if (answers.size === questions.size) return { answers, summary, usage: total(usages) };
  }
  const unanswered = [...questions.keys()].filter((key) => !answers.has(key));
  throw new TandemError(
    'JUDGE_ANSWER_INVALID',
    'The model did not answer with criteria of the rubric. You were not charged. Try again or use another model.',
    { details: { unanswered }, retryAfterS: 5 },
  );
}

/** Share of the usual limit of an answer that most answers need. */
const USUAL_ANSWER = 1 / 4;

/** Servers reject a limit that does not fit into the context together with the prompt. */
function mostTokens(
  messages: readonly { content: string }[],
  { questions, contextTokens }: { questions: number; contextTokens: number | null },
): number {
  const most = mostAnswerTokens(questions);
  if (contextTokens === null) return most;
  const room = contextTokens - Math.ceil(bytesOf(messages) / BYTES_PER_TOKEN.usual);
  // The prompt may have fewer tokens than that.
  const least = Math.max(1, Math.floor(Math.min(most * USUAL_ANSWER, contextTokens / 2)));
  return Math.min(most, Math.max(room, least));
}

const MOST_EVIDENCE = 5;

async function concluded(given: readonly ModelAnswer[], finder: QuoteFinder): Promise<Omit<QuestionResult, 'type'>> {
  const answer = winnerOf(given);
  const agreeing = given.filter((one) => one.answer === answer).toSorted((a, b) => b.confidence - a.confidence);
  const surest = agreeing[0]!;
  const quotes = new Set(agreeing.flatMap((one) => one.quotes));
  const found = new Set<string>();
  for (const quote of quotes) {
    const place = found.size < MOST_EVIDENCE ? await finder.find(quote) : null;
    if (place !== null) found.add(place);
  }
  const evidence = [...found];
  const isInvented = quotes.size > 0 && evidence.length === 0;
  const confidence = given.length === 1 ? surest.confidence : agreeing.length / given.length;
  return { answer, reason: surest.reason, confidence: rounded(isInvented ? confidence / 2 : confidence), evidence };
}

function winnerOf(given: readonly ModelAnswer[]): string {
  const votes = new Map<string, { count: number; confidence: number }>();
  for (const { answer, confidence } of given) {
    const sofar = votes.get(answer) ?? { count: 0, confidence: 0 };
    votes.set(answer, { count: sofar.count + 1, confidence: sofar.confidence + confidence });
  }
  const ranked = [...votes].sort(([, a], [, b]) => b.count - a.count || b.confidence - a.confidence);
  return ranked[0]![0];
}

/** The summary of the sample that agrees best with the outcome. */
function summaryOf(samples: readonly Sample[], results: ReadonlyMap<string, QuestionResult>): string {
  const agreement = ({ answers }: Sample) =>
    [...results].filter(([key, { answer }]) => answers.get(key)?.answer === answer).length;
  return samples.toSorted((a, b) => agreement(b) - agreement(a)).find(({ summary }) => summary !== '')?.summary ?? '';
}

function total(usages: readonly TokenUsage[]): TokenUsage {
  return {
    promptTokens: usages.reduce((sum, { promptTokens }) => sum + promptTokens, 0),
    completionTokens: usages.reduce((sum, { completionTokens }) => sum + completionTokens, 0),
    isEstimated: usages.some(({ isEstimated }) => isEstimated),
  };
}

function rounded(confidence: number): number {
  return Math.round(confidence * 1000) / 1000;
}
