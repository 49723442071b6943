import { TandemError } from '../../machines/errors.ts';
import type { LanguageModels, TokenUsage } from '../llm.ts';
import type { CountTokens } from '../tokens.ts';
import { checkedAnswer, mostCharactersFor } from './answer-check.ts';
import { messagesFor } from './prompt.ts';
import { applyDictionary, correctByRules, RULES_MODEL } from './rules/correct-by-rules.ts';
import { runInSlices } from './slices.ts';
import { streamByRules } from './stream-by-rules.ts';
import type { CorrectionPart, CorrectionRequest } from './text-correction.ts';
import { windowsOf } from './windows.ts';

interface ModelCorrection extends CorrectionRequest {
  model: string;
  /** What the model fails at is done by rules, instead of failing. */
  mayFallBack: boolean;
}

interface Tools {
  models: LanguageModels;
  countTokens: CountTokens;
}

/**
 * A text is corrected part by part. The answer about a part is held back until all of it has come and has been found to be
 * that part, corrected; then it is passed on, and the next part asked for. So nothing is ever sent that has to be
 * taken back, and a text of any length fits the model. A part whose answer is none is corrected by rules.
 */
export async function* correctByModel(request: ModelCorrection, tools: Tools): AsyncGenerator<CorrectionPart, void> {
  const usage: TokenUsage = { promptTokens: 0, completionTokens: 0, isEstimated: false };
  const byModel = { model: request.model, parts: 0 };
  let rejected = 0;
  let before = '';
  let at = 0;
  for (const part of windowsOf(request.text)) {
    request.signal.throwIfAborted();
    if (part.isVerbatim) yield { type: 'text', text: part.text };
    else {
      const answer = await answerTo({ ...request, text: part.text, before }, tools, usage);
      if (answer.outcome === 'failed') {
        // With its retries it failed for good, and is not asked again.
        const rest = { ...request, text: request.text.slice(at) };
        add(yield* streamByRules(rest, tools.countTokens), usage);
        rejected++;
        break;
      }
      const corrected = await correctedPart(answer, { ...request, text: part.text });
      if (corrected.isByRules) rejected++;
      else byModel.parts++;
      if (answer.outcome === 'answered') byModel.model = answer.model;
      yield { type: 'text', text: corrected.text };
      before = corrected.text.slice(-CONTEXT_CHARACTERS);
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

/** Whoever thinks for more characters than that will not come to an end. */
const MOST_REASONING = 20_000;

/** Of what stands before a part, so much is shown with it. */
const CONTEXT_CHARACTERS = 300;

async function correctedPart(answer: Answer, request: ModelCorrection): Promise<{ text: string; isByRules: boolean }> {
  const { dictionary, signal } = request;
  const byRules = await runInSlices(correctByRules(request), signal);
  const checked = answer.outcome === 'answered' ? checkedAnswer(answer.text, { ...request, byRules }) : null;
  if (checked === null) return { text: byRules, isByRules: true };
  // The dictionary holds whatever the model thinks of it.
  return { text: await runInSlices(applyDictionary(checked, dictionary), signal), isByRules: false };
}

type Answer = { outcome: 'answered'; text: string; model: string } | { outcome: 'unusable' } | { outcome: 'failed' };

/** @throws the signal's reason; what the model throws, unless rules may do what it fails at */
async function answerTo(
  request: ModelCorrection & { before: string },
  { models, countTokens }: Tools,
  usage: TokenUsage,
): Promise<Answer> {
  const { text, model, mayFallBack, signal } = request;
  const messages = messagesFor(request);
  const mostCharacters = mostCharactersFor(text, request.dictionary);
  let answer = '';
  let produced = '';
  let isCounted = false;
  try {
    const maxTokens = 2 * countTokens(text) + 256;
    for await (const part of models.stream({
      model,
      messages,
      temperature: 0,
      maxTokens,
      signal,
    })) {
      if (part.type === 'finished') {
        isCounted = true;
        add(part.usage, usage);
        return part.reason === 'stop'
          ? { outcome: 'answered', text: answer, model: part.model }
          : { outcome: 'unusable' };
      }
      if (part.type === 'toolCall') return { outcome: 'unusable' };
      produced += part.text;
      if (part.type === 'text') answer += part.text;
      if (answer.length > mostCharacters || produced.length > mostCharacters + MOST_REASONING)
        return { outcome: 'unusable' };
    }
    return { outcome: 'unusable' };
  } catch (error) {
    signal.throwIfAborted();
    if (!mayFallBack || !(error instanceof TandemError)) throw error;
    return { outcome: 'failed' };
  } finally {
    // It was stopped, or broke: what it took is counted here.
    if (!isCounted && produced !== '') {
      const prompt = messages.map(({ content }) => content).join('\n');
      add({ promptTokens: countTokens(prompt), completionTokens: countTokens(produced), isEstimated: true }, usage);
    }
  }
}

function add(more: TokenUsage, to: TokenUsage): void {
  to.promptTokens += more.promptTokens;
  to.completionTokens += more.completionTokens;
  to.isEstimated ||= more.isEstimated;
}
