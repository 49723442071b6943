import sherpa from 'sherpa-onnx-node';

export interface PunctuationModel {
  /** Path of its file. */
  model: string;
  /** Subword vocabulary of an English `cnn-bilstm` model; null for a `ct-transformer`. */
  bpeVocab: string | null;
  languages: readonly string[];
}

/** Loads it into this process, which a damaged model crashes. */
export function loadPunctuation({ model, bpeVocab }: PunctuationModel): (text: string) => string {
  const common = { numThreads: 1, provider: 'cpu', debug: 0 };
  const punctuation =
    bpeVocab === null
      ? new sherpa.OfflinePunctuation({ model: { ctTransformer: model, ...common } })
      : new sherpa.OnlinePunctuation({ model: { cnnBilstm: model, bpeVocab, ...common } });
  return (text) => (/\p{Script=Han}/u.test(text) ? punctuation.addPunct(text) : asLatin(punctuation.addPunct(text)));
}

/** A Chinese and English model uses Chinese marks in both, without spaces. */
function asLatin(text: string): string {
  return text
    .replaceAll(/[，、]\s*/g, ', ')
    .replaceAll(/。\s*/g, '. ')
    .replaceAll(/？\s*/g, '? ')
    .trim();
}
