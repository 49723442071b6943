import { describe, expect, it } from 'vitest';
import { pauseAfterMs } from '../../../speech/synthesis/pauses.ts';
import { readScript } from '../../../speech/text/read-script.ts';

const pauseAfter = (text: string) => pauseAfterMs(readScript(text, { language: 'en-us' }).clauses.at(-1)!);

describe('pause after a clause', () => {
  it('lasts longer after a sentence than within, and does not follow a split', () => {
    expect(pauseAfter('They are ready.')).toBeGreaterThan(pauseAfter('They are ready,'));
    expect(pauseAfter('They are ready,')).toBeGreaterThan(0);
    expect(pauseAfter('They are ready')).toBe(0);
  });

  it.each(['Is it?', 'It is!', '“It is.”', '(It is.)', 'वह तैयार है।', '它好了。', 'هل هو؟'])(
    'equals that of a sentence after %s',
    (text) => {
      expect(pauseAfter(text)).toBe(pauseAfter('It is.'));
    },
  );
});
