import { readScript } from '../../speech/text/read-script.ts';
import type { Script } from '../../speech/text/script.ts';
import { passageFor } from '../../speech/voices/passages.ts';

/** The first sentence of what voices of the language (BCP 47) are given to read. */
export function sampleScript(language: string): Script {
  const { text } = passageFor(language);
  const [first] = new Intl.Segmenter('und', { granularity: 'sentence' }).segment(text);
  return readScript(first?.segment.trim() || text, { language });
}
