import type { AppContext, CorrectionStyle } from '../text-correction.ts';
import type { Rule } from './token.ts';

/** The rules a text is corrected by, in their order. */
export function rulesFor(_: { style: CorrectionStyle; appContext: AppContext | null; isEnglish: boolean }): Rule[] {
  return [];
}
