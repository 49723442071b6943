import { correctByRules, type RulesRequest } from '../../../language/correction/rules/correct-by-rules.ts';
import type { AppContext, CorrectionStyle } from '../../../language/correction/text-correction.ts';

interface Asked {
  style?: { [Key in keyof CorrectionStyle]?: CorrectionStyle[Key] | undefined };
  appContext?: AppContext | null;
  dictionary?: readonly (readonly [string, string])[];
}

export const NO_STYLE: CorrectionStyle = {
  tone: null,
  autoCapitalize: false,
  autoPunctuate: false,
  useContractions: null,
  expandAbbreviations: false,
};

/** Corrects a text by rules; every style option that is not given is off. */
export function byRules(text: string, asked: Asked = {}): string {
  return atOnce(correctByRules(rulesRequest(text, asked)));
}

export function rulesRequest(
  text: string,
  { style = {}, appContext = null, dictionary = [] }: Asked = {},
): RulesRequest {
  return {
    text,
    dictionary: dictionary.map(([term, replacement]) => ({ term, replacement })),
    style: { ...NO_STYLE, ...(style as Partial<CorrectionStyle>) },
    appContext,
  };
}

export function atOnce<Result>(work: Generator<void, Result>): Result {
  let step = work.next();
  while (!step.done) step = work.next();
  return step.value;
}
