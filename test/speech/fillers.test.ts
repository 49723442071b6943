import { describe, expect, it } from 'vitest';
import { removeFillers } from '../../speech/fillers.ts';
import * as fc from '../properties.ts';
import { wordsOf } from './words.ts';

describe('fillers', () => {
  it('are left out of text and words', () => {
    const { text, words } = removeFillers({ text: 'i uh want um two', words: wordsOf('i uh want um two') }, 'en');
    expect(text).toBe('i want two');
    expect(words.map(({ word }) => word)).toEqual(['i', 'want', 'two']);
    expect(words[1]!.startMs).toBe(600);
  });

  it('take their commas with them and leave sentences whole', () => {
    expect(clean('Um, yes. Well, uh, I am, hmm.')).toBe('Yes. Well, I am.');
    expect(clean('Is it, er? Uhh... no')).toBe('Is it? No');
    expect(clean('I am, um')).toBe('I am');
    expect(clean('Ummm.')).toBe('');
  });

  it('are not the words that look like them in another language', () => {
    expect(clean('er kommt um acht', 'de')).toBe('er kommt um acht');
    expect(clean('äh, er kommt ähm um acht', 'de')).toBe('er kommt um acht');
    expect(clean('um dois', 'pt')).toBe('um dois');
    expect(clean('um or uhm', 'xx')).toBe('um or');
  });

  it('are removed in other scripts', () => {
    expect(clean('э я эээ не знаю', 'ru')).toBe('я не знаю');
    expect(clean('उम्म मुझे हम्म नहीं पता', 'hi')).toBe('मुझे नहीं पता');
  });

  it('are not answers, acronyms or units', () => {
    const kept = 'Mhm, uh-huh, ah, the ER takes 5 mm, I hum, like, you know.';
    expect(clean(kept)).toBe(kept);
  });

  it('are found in a transcript of capitals', () => {
    expect(clean('I UM WANT ER TWO')).toBe('I WANT TWO');
  });

  it('never take a word of the text with them', () => {
    const words = fc.constantFrom('yes', 'No,', 'we', 'go.', 'Um,', 'uh', 'hmm.', 'er?');
    fc.assert(
      fc.property(fc.array(words, { maxLength: 20 }), (tokens) => {
        const spoken = (text: string) => text.toLowerCase().match(/\b(?:yes|no|we|go)\b/g) ?? [];
        const out = clean(tokens.join(' '));
        expect(spoken(out)).toEqual(spoken(tokens.join(' ')));
        expect(out).not.toMatch(/\b(?:um|uh|hmm|er)\b|\s\s|\s[,.?]/i);
      }),
    );
  });
});

function clean(text: string, language = 'en'): string {
  return removeFillers({ text, words: wordsOf(text) }, language).text;
}
