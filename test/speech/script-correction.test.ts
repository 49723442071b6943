import { describe, expect, it } from 'vitest';
import { correctScript } from '../../speech/script-correction.ts';
import * as fc from '../properties.ts';
import { anyText, wordsOf } from './words.ts';

describe('script correction', () => {
  it('writes English words in Latin and Hindi words in Devanagari', () => {
    expect(correct('मुझे ऑर्डर cancel karna hai')).toBe('मुझे order cancel करना है');
    expect(correct('Mujhe नया पासवर्ड chahiye')).toBe('मुझे नया password चाहिए');
  });

  it('keeps punctuation, spacing and unknown words', () => {
    expect(correct('हैलो,  रमेश! मेरी  मीटिंग kab hai?')).toBe('hello,  रमेश! मेरी  meeting कब है?');
  });

  it('supports English plurals', () => {
    expect(correct('दो टिकट्स और तीन पॉलिसीज़')).toBe('दो tickets और तीन policies');
  });

  it('corrects words and text alike', () => {
    const { text, words } = correctScript({
      text: 'ऑफिस kahan hai?',
      words: wordsOf('ऑफिस kahan hai?'),
      languages: ['hi', 'en'],
    });
    expect(words.map(({ word }) => word).join(' ')).toBe(text);
    expect(words.map(({ startMs }) => startMs)).toEqual(wordsOf('a b c').map(({ startMs }) => startMs));
  });

  it('treats a word of both languages as Hindi only between Hindi words', () => {
    expect(correct('aap se baat ho gayi')).toBe('आप से बात हो गयी');
    expect(correct('the main problem is here')).toBe('the main problem is here');
    expect(correct('please tell me yeh')).toBe('please tell me यह');
  });

  it('keeps upper-case names and acronyms', () => {
    expect(correct('KYA aap HAI')).toBe('KYA आप HAI');
  });

  it('requires that English or Hindi is possible', () => {
    expect(correct('मुझे ऑर्डर cancel karna hai', ['en'])).toBe('मुझे ऑर्डर cancel karna hai');
    expect(correct('मोबाइल hai', ['hi'])).toBe('मोबाइल है');
    expect(correct('mujhe मोबाइल', ['mr', 'en'])).toBe('mujhe mobile');
  });

  it('detects the languages from the text if none are given', () => {
    expect(correct('mujhe nahi pata', null)).toBe('मुझे नहीं पता');
    expect(correct('we ate aloo at home yesterday ji', null)).toBe('we ate aloo at home yesterday ji');
  });

  it('changes nothing the second time', () => {
    const words = ['mujhe', 'order', 'ऑर्डर', 'hai', 'me', 'to', 'se', 'नहीं', 'टिकट्स', 'HAI', 'problem,', 'ji.'];
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...words), { maxLength: 12 }), (chosen) => {
        const once = correct(chosen.join(' '));
        expect(correct(once)).toBe(once);
        expect(once.split(' ')).toHaveLength(chosen.join(' ').split(' ').length);
      }),
    );
  });

  it('accepts any text', () => {
    fc.assert(
      fc.property(anyText, (text) => {
        expect(typeof correct(text, null)).toBe('string');
      }),
    );
  });
});

function correct(text: string, languages: readonly string[] | null = ['hi', 'en']): string {
  return correctScript({ text, words: wordsOf(text), languages }).text;
}
