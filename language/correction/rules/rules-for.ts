import type { AppContext, CorrectionStyle } from '../text-correction.ts';
import { expandAbbreviations } from './abbreviations.ts';
import { addApostrophes } from './apostrophes.ts';
import { addCapitals } from './capitals.ts';
import { addCommas } from './commas.ts';
import { contract } from './contract.ts';
import { expandContractions } from './expand-contractions.ts';
import { addFinalMarks, calmMarks } from './final-marks.ts';
import { commasOfMail, mailLinesOf, noMail } from './mail-lines.ts';
import { closeQuotes } from './quotes.ts';
import { spaceMarks } from './spacing.ts';
import type { Rule } from './token.ts';

interface Corrected {
  style: CorrectionStyle;
  appContext: AppContext | null;
  isEnglish: boolean;
  isFrench: boolean;
}

/**
 * Returns the rules for a text, in order: each may rely on the results of those before it. A professional tone expands
 * contractions and shorthand and calms exclamation marks; a document expands contractions. An explicit style setting
 * for contractions takes precedence.
 */
export function rulesFor({ style, appContext, isEnglish, isFrench }: Corrected): Rule[] {
  const isProfessional = isProfessionalTone(style);
  const isMessage = appContext === 'chat' || appContext === 'message' || appContext === 'social';
  const isMail = appContext === 'email' && isEnglish;
  const contracts = contractionsFor(style, appContext);
  const rules: Rule[] = [];
  if (isEnglish && (style.expandAbbreviations || isProfessional)) {
    const letters = isProfessional || isMessage;
    rules.push(expandAbbreviations({ abbreviations: style.expandAbbreviations, letters }));
  }
  if (style.autoPunctuate) rules.push(spaceMarks({ isFrench }));
  if (style.autoPunctuate && isEnglish) rules.push(addApostrophes);
  if (isEnglish && contracts !== null) rules.push(contracts ? contract : expandContractions);
  if (style.autoPunctuate && isEnglish) rules.push(addCommas);
  if (style.autoPunctuate && isMail) rules.push(commasOfMail);
  if (style.autoPunctuate) {
    rules.push(closeQuotes);
    rules.push(function* (tokens) {
      const mailLineAt = isMail ? yield* mailLinesOf(tokens) : noMail;
      return yield* addFinalMarks({ isEnglish, isMessage, mailLineAt })(tokens);
    });
  }
  if (isProfessional) rules.push(calmMarks);
  if (style.autoCapitalize && isEnglish) {
    rules.push(function* (tokens) {
      return yield* addCapitals({ mailLineAt: isMail ? yield* mailLinesOf(tokens) : noMail })(tokens);
    });
  }
  return rules;
}

/**
 * True contracts, false expands, null changes nothing. Without a setting, a professional tone and a document expand.
 */
export function contractionsFor(style: CorrectionStyle, appContext: AppContext | null): boolean | null {
  return style.useContractions ?? (isProfessionalTone(style) || appContext === 'document' ? false : null);
}

function isProfessionalTone({ tone }: CorrectionStyle): boolean {
  return /^(?:professional|formal|business)$/i.test(tone?.trim() ?? '');
}
