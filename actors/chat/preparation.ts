import { RULES_MODEL } from '../../language/correction/rules/correct-by-rules.ts';
import { tokensNeeded } from '../../language/correction/tokens-needed.ts';
import type { LanguageModel, LanguageModels } from '../../language/llm.ts';
import type { CountTokens } from '../../language/tokens.ts';
import { TandemError } from '../../machines/errors.ts';
import { runInSlices } from '../../runtime/slices.ts';
import type { AskRequest, ChatAsk, CorrectionAsk } from './chat-desk.ts';
import type { Opening } from './completion-account.ts';
import type { TokenCounter } from './token-count.ts';

type Preparation = Pick<
  Opening,
  'fresh' | 'extraTokens' | 'contextTokens' | 'maxTokens' | 'choices' | 'leastTokens'
> & {
  /** Versioned model id. */
  model: string;
};

interface Tools {
  models: Pick<LanguageModels, 'resolve'>;
  counter: TokenCounter;
  countTokens: CountTokens;
  /** Aborted when the request is cancelled. */
  signal: AbortSignal;
}

/** Resolves the model and counts the request's tokens. @throws as `LanguageModels.resolve` does */
export async function preparationOf({ what, model }: AskRequest, tools: Tools): Promise<Preparation> {
  const { models } = tools;
  if (what.mode === 'correct') return await correctionOf(what, await correctorOf(model, models), tools);
  return await chatOf(what, { ...tools, model: await models.resolve(model) });
}

async function chatOf(
  { messages, tools = [], responseSchema, maxTokens, choices = 1 }: ChatAsk,
  { model: { id, contextTokens }, counter }: { model: LanguageModel; counter: TokenCounter },
): Promise<Preparation> {
  const fresh = await counter.messages(messages);
  const beside = [...tools, ...(responseSchema ? [responseSchema] : [])];
  const extraTokens = beside.length === 0 ? 0 : await counter.text(JSON.stringify(beside));
  return { model: id, contextTokens, fresh, extraTokens, maxTokens: maxTokens ?? null, choices };
}

async function correctionOf(
  correction: CorrectionAsk,
  model: LanguageModel | null,
  { countTokens, signal }: Tools,
): Promise<Preparation> {
  const isByModel = model !== null;
  const needed = await runInSlices(tokensNeeded(correction, { isByModel, countTokens }), signal);
  return {
    model: model?.id ?? RULES_MODEL,
    // The text is split to fit any model.
    contextTokens: null,
    fresh: null,
    extraTokens: needed.promptTokens,
    maxTokens: needed.mostTokens,
    choices: 1,
    leastTokens: needed.leastTokens,
  };
}

/** Null: use rules, as requested or because no default model exists. */
async function correctorOf(
  name: string | null,
  models: Pick<LanguageModels, 'resolve'>,
): Promise<LanguageModel | null> {
  if (name === RULES_MODEL) return null;
  try {
    return await models.resolve(name);
  } catch (error) {
    if (name === null && error instanceof TandemError) return null;
    throw error;
  }
}
