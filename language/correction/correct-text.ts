import { TandemError } from '../../machines/errors.ts';
import type { LanguageModels } from '../llm.ts';
import type { CountTokens } from '../tokens.ts';
import { correctByModel } from './correct-by-model.ts';
import { RULES_MODEL } from './rules/correct-by-rules.ts';
import { streamByRules } from './stream-by-rules.ts';
import type { CorrectionPart, CorrectionRequest, TextCorrection } from './text-correction.ts';

export interface TextCorrectionOptions {
  models: LanguageModels;
  countTokens: CountTokens;
}

/** Corrects texts by the requested model, else the default model, else rules. */
export function createTextCorrection({ models, countTokens }: TextCorrectionOptions): TextCorrection {
  return {
    async *stream(request) {
      const model = request.model === RULES_MODEL ? null : await modelFor(request, models);
      if (model === null) yield* byRules(request, countTokens);
      else yield* correctByModel({ ...request, model, mayFallBack: request.model === null }, { models, countTokens });
    },
  };
}

/** Null means rules. A named model that is unavailable is an error; without a name, rules are good enough. */
async function modelFor({ model }: CorrectionRequest, models: LanguageModels): Promise<string | null> {
  try {
    return (await models.resolve(model)).id;
  } catch (error) {
    if (model === null && error instanceof TandemError) return null;
    throw error;
  }
}

async function* byRules(request: CorrectionRequest, countTokens: CountTokens): AsyncGenerator<CorrectionPart, void> {
  const usage = yield* streamByRules(request, countTokens);
  yield { type: 'finished', usage, model: RULES_MODEL, byRules: 'all' };
}
