import { describe, expect, it } from 'vitest';
import { pauseAfterMs } from '../../../speech/synthesis/pauses.ts';
import { readScript } from '../../../speech/text/read-script.ts';

const pauseAfter = (text: string) => pauseAfterMs(readScript(text, { language: 'en-us' }).clauses.at(-1)!);

describe('the pause after a clause', () => {
  it('is longer at the end of a sentence than within it, and there is none where a clause is only too long', () => {
    expect(pauseAfter('They are ready.')).toBeGreaterThan(pauseAfter('They are ready,'));
    expect(pauseAfter('They are ready,')).toBeGreaterThan(0);
    expect(pauseAfter('They are ready')).toBe(0);
  });

  it.each(['Is it?', 'It is!', '“It is.”', '(It is.)', 'वह तैयार है।', '它好了。', 'هل هو؟'])(
    'is that of a sentence after %s',
    (text) => {
      expect(pauseAfter(text)).toBe(pauseAfter('It is.'));
    },
  );
});
