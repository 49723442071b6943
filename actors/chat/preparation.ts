import { RULES_MODEL } from '../../language/correction/rules/correct-by-rules.ts';
import type { LanguageModel, LanguageModels } from '../../language/llm.ts';
import { TandemError } from '../../machines/errors.ts';
import type { AskRequest, ChatAsk, CorrectionAsk } from './chat-desk.ts';
import type { Opening } from './completion-account.ts';
import type { TokenCounter } from './token-count.ts';

type Preparation = Pick<Opening, 'fresh' | 'extraTokens' | 'contextTokens' | 'maxTokens' | 'leastTokens'> & {
  /** The versioned id. */
  model: string;
};

/** Which model it will be, and what the request takes of its context. @throws as `LanguageModels.resolve` does */
export async function preparationOf(
  { what, model }: AskRequest,
  { models, counter }: { models: Pick<LanguageModels, 'resolve'>; counter: TokenCounter },
): Promise<Preparation> {
  if (what.mode === 'correct') return await correctionOf(what, { model: await correctorOf(model, models), counter });
  return await chatOf(what, { model: await models.resolve(model), counter });
}

async function chatOf(
  { messages, tools = [], responseSchema, maxTokens }: ChatAsk,
  { model: { id, contextTokens }, counter }: { model: LanguageModel; counter: TokenCounter },
): Promise<Preparation> {
  const fresh = await counter.messages(messages);
  const beside = [...tools, ...(responseSchema ? [responseSchema] : [])];
  const extraTokens = beside.length === 0 ? 0 : await counter.text(JSON.stringify(beside));
  return { model: id, contextTokens, fresh, extraTokens, maxTokens: maxTokens ?? null };
}

/** What a model is told with each part of a text, beside the dictionary. */
const INSTRUCTION_TOKENS = 500;
/** A text is corrected in parts of so many tokens, at the least. */
const TOKENS_PER_PART = 400;

async function correctionOf(
  { text, dictionary }: CorrectionAsk,
  { model, counter }: { model: LanguageModel | null; counter: TokenCounter },
): Promise<Preparation> {
  const textTokens = await counter.text(text);
  const parts = model === null ? 0 : Math.ceil(textTokens / TOKENS_PER_PART);
  const told = INSTRUCTION_TOKENS + (await counter.text(JSON.stringify(dictionary)));
  return {
    model: model?.id ?? RULES_MODEL,
    // It is taken apart to fit any model.
    contextTokens: null,
    fresh: null,
    extraTokens: textTokens + parts * told,
    maxTokens: 2 * textTokens + 64,
    leastTokens: textTokens,
  };
}

/** Null: rules, which are there when no model is, as for whoever names none. */
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
