import { TandemError } from '../../machines/errors.ts';
import { runInSlices } from '../../runtime/slices.ts';
import type { LanguageModels, TokenUsage } from '../llm.ts';
import type { CountTokens } from '../tokens.ts';
import { checkedAnswer, mostCharactersFor } from './answer-check.ts';
import { createPreparation, keepsWords, lastingEntries, type PreparedPart } from './dictionary-words.ts';
import { messagesFor } from './prompt.ts';
import { applyDictionary, correctByRules, RULES_MODEL } from './rules/correct-by-rules.ts';
import { type ApplyDictionary, createDictionary } from './rules/dictionary.ts';
import { streamByRules, usageOfRules } from './stream-by-rules.ts';
import type { CorrectionPart, CorrectionRequest } from './text-correction.ts';
import { mostAnswerTokens, promptTokensOf } from './tokens-needed.ts';
import { windowsOf } from './windows.ts';

interface ModelCorrection extends CorrectionRequest {
  model: string;
  /** Falls back to rules when the model fails, instead of failing. */
  mayFallBack: boolean;
}

interface Tools {
  models: LanguageModels;
  countTokens: CountTokens;
}

/**
 * Corrects a text part by part. Each answer is buffered, checked and passed on before the next part is requested, so
 * nothing sent ever has to be retracted and a text of any length fits the model. If an answer is rejected, rules
 * correct that part, and their tokens count as used instead of the model's.
 */
export async function* correctByModel(request: ModelCorrection, tools: Tools): AsyncGenerator<CorrectionPart, void> {
  const { dictionary, signal } = request;
  const { countTokens } = tools;
  const putWords = await runInSlices(createDictionary(dictionary), signal);
  const putLasting = await runInSlices(createDictionary(lastingEntries(dictionary)), signal);
  const prepare = createPreparation(putWords);
  const usage: TokenUsage = { promptTokens: 0, completionTokens: 0, isEstimated: false };
  const byModel = { model: request.model, parts: 0 };
  let rejected = 0;
  let before = '';
  let at = 0;
  for (const part of windowsOf(request.text)) {
    signal.throwIfAborted();
    const prepared = part.isVerbatim ? null : await runInSlices(prepare(part.text), signal);
    if (prepared === null) yield { type: 'text', text: part.text };
    else if (prepared.leftTo === 'nobody') yield { type: 'text', text: prepared.text };
    else {
      const answer = yield* answerTo({ ...request, ...prepared, before }, tools, usage);
      if (answer.outcome === 'failed') {
        // The model's retries are exhausted, so the rest goes to the rules.
        const rest = { ...request, text: request.text.slice(at) };
        add(yield* streamByRules(rest, countTokens), usage);
        rejected++;
        break;
      }
      const byRules = await runInSlices(correctByRules({ ...request, text: part.text }, putWords), signal);
      const corrected = await correctedBy(answer, { ...prepared, byRules }, { putLasting, signal });
      if (corrected === null) {
        rejected++;
        add(await usageOfRules({ text: part.text, corrected: byRules, countTokens, signal }), usage);
      } else {
        byModel.parts++;
        if (answer.outcome === 'answered') add(answer.used, usage);
      }
      if (answer.outcome === 'answered') byModel.model = answer.model;
      before = corrected ?? byRules;
      yield { type: 'text', text: before };
    }
    at += part.text.length;
  }
  yield {
    type: 'finished',
    usage,
    model: byModel.parts > 0 || rejected === 0 ? byModel.model : RULES_MODEL,
    byRules: rejected === 0 ? 'nothing' : byModel.parts === 0 ? 'all' : 'parts',
  };
}

/** In characters. A model that reasons for longer does not finish. */
const MOST_REASONING = 20_000;

/** Null if the answer is not a correction or lacks a word of the dictionary, which overrules the model. */
async function correctedBy(
  answer: Answer,
  { text, words, byRules }: { text: string; words: readonly string[]; byRules: string },
  { putLasting, signal }: { putLasting: ApplyDictionary; signal: AbortSignal },
): Promise<string | null> {
  const checked = answer.outcome === 'answered' ? checkedAnswer(answer.text, { text, byRules, words }) : null;
  if (checked === null) return null;
  const put = await runInSlices(applyDictionary(checked, putLasting), signal);
  return keepsWords(put.text, words) ? put.text : null;
}

type Answer =
  | { outcome: 'answered'; text: string; model: string; used: TokenUsage }
  | { outcome: 'unusable' }
  | { outcome: 'failed' };

/**
 * Yields the usage so far, added to the given usage.
 * @throws the signal's reason; the model's error, unless falling back is allowed
 */
async function* answerTo(
  request: ModelCorrection & PreparedPart & { before: string },
  { models, countTokens }: Tools,
  usage: TokenUsage,
): AsyncGenerator<CorrectionPart & { type: 'used' }, Answer> {
  const { text, model, leftTo, mayFallBack, onBehalfOf, signal } = request;
  if (leftTo === 'rules') return { outcome: 'unusable' };
  const messages = messagesFor(request);
  const taken: TokenUsage = {
    promptTokens: promptTokensOf(messages, countTokens),
    completionTokens: 0,
    isEstimated: true,
  };
  const mostCharacters = mostCharactersFor(text);
  let answer = '';
  let produced = 0;
  try {
    const maxTokens = mostAnswerTokens(countTokens(text));
    yield { type: 'used', usage: sum(usage, taken) };
    const whose = onBehalfOf === undefined ? {} : { onBehalfOf };
    for await (const part of models.stream({ model, messages, temperature: 0, maxTokens, ...whose, signal })) {
      if (part.type === 'finished') {
        if (part.reason !== 'stop') return { outcome: 'unusable' };
        const used = isCounted(part.usage) ? part.usage : taken;
        return { outcome: 'answered', text: answer, model: part.model, used };
      }
      if (part.type !== 'text' && part.type !== 'reasoning') return { outcome: 'unusable' };
      // Empty parts count too, so that an endless stream of them ends.
      produced += Math.max(1, part.text.length);
      if (part.type === 'text') answer += part.text;
      taken.completionTokens += countTokens(part.text);
      yield { type: 'used', usage: sum(usage, taken) };
      if (answer.length > mostCharacters || produced > mostCharacters + MOST_REASONING) return { outcome: 'unusable' };
    }
    return { outcome: 'unusable' };
  } catch (error) {
    signal.throwIfAborted();
    if (!mayFallBack || !(error instanceof TandemError)) throw error;
    return { outcome: 'failed' };
  }
}

function isCounted({ promptTokens, completionTokens }: TokenUsage): boolean {
  return [promptTokens, completionTokens].every((count) => Number.isSafeInteger(count) && count >= 0);
}

function add(more: TokenUsage, to: TokenUsage): void {
  Object.assign(to, sum(to, more));
}

function sum(one: TokenUsage, other: TokenUsage): TokenUsage {
  return {
    promptTokens: one.promptTokens + other.promptTokens,
    completionTokens: one.completionTokens + other.completionTokens,
    isEstimated: one.isEstimated || other.isEstimated,
  };
}
