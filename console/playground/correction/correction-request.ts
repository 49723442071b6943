import { api } from '../../app/api.ts';
import { charged } from '../charged.ts';

export type AppContext = 'email' | 'chat' | 'document' | 'message' | 'social';

export interface CorrectionForm {
  text: string;
  /** Null: a language model if configured, else the rules. */
  model: string | null;
  context: AppContext | null;
  tone: string;
  capitalize: boolean;
  punctuate: boolean;
  abbreviations: boolean;
  /** Null: contractions stay. */
  contractions: boolean | null;
  /** One `term = replacement` per line. */
  dictionary: string;
}

/** Body of `POST /v1/chat/completions` for a correction. */
export function correctionRequestOf(form: CorrectionForm) {
  const { text, model, context, tone, capitalize, punctuate, abbreviations, contractions } = form;
  const dictionary = dictionaryOf(form.dictionary);
  return {
    text,
    ...(model !== null && { model }),
    ...(context !== null && { appContext: context }),
    ...(dictionary.length > 0 && { dictionary }),
    style: {
      autoCapitalize: capitalize,
      autoPunctuate: punctuate,
      ...(abbreviations && { expandAbbreviations: true }),
      ...(contractions !== null && { useContractions: contractions }),
      ...(tone.trim() !== '' && { tone: tone.trim() }),
    },
    stream: false,
    save_chat: false,
  };
}

/** A line without `=` removes its term. */
export function dictionaryOf(lines: string): { term: string; replacement: string }[] {
  return lines
    .split('\n')
    .map((line) => {
      const [term = '', ...rest] = line.split('=');
      return { term: term.trim(), replacement: rest.join('=').trim() };
    })
    .filter(({ term }) => term !== '');
}

/** @throws ApiError */
export async function correct(form: CorrectionForm) {
  const { body, ...charge } = await charged(api.POST('/v1/chat/completions', { body: correctionRequestOf(form) }));
  const { model, choices, usage } = body as Exclude<typeof body, string>;
  return { ...charge, model, usage, before: form.text, after: choices[0]?.message.content ?? '' };
}
