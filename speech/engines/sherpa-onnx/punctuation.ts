import sherpa from 'sherpa-onnx-node';

/** A model that puts punctuation into texts. */
export interface PunctuationModel {
  /** Its file. */
  model: string;
  /** The pieces of words that an English model of the `cnn-bilstm` kind works on; null for a `ct-transformer`. */
  bpeVocab: string | null;
  languages: readonly string[];
}

/** Loads it into this process, which does not survive a damaged one. */
export function loadPunctuation({ model, bpeVocab }: PunctuationModel): (text: string) => string {
  const common = { numThreads: 1, provider: 'cpu', debug: 0 };
  const punctuation =
    bpeVocab === null
      ? new sherpa.OfflinePunctuation({ model: { ctTransformer: model, ...common } })
      : new sherpa.OnlinePunctuation({ model: { cnnBilstm: model, bpeVocab, ...common } });
  return (text) => (/\p{Script=Han}/u.test(text) ? punctuation.addPunct(text) : asLatin(punctuation.addPunct(text)));
}

/** A model of Chinese and English sets the marks of Chinese in both, without spaces. */
function asLatin(text: string): string {
  return text
    .replaceAll(/[，、]\s*/g, ', ')
    .replaceAll(/。\s*/g, '. ')
    .replaceAll(/？\s*/g, '? ')
    .trim();
}
