import { describe, expect, it } from 'vitest';
import { readScript } from '../../../speech/text/read-script.ts';
import { ScriptError } from '../../../speech/text/script.ts';
import { spokenOf } from './spoken-of.ts';

const read = (ssml: string) => readScript(ssml, { language: 'en-us' });
const inside = (ssml: string) => read(`<speak>${ssml}</speak>`);
const said = (ssml: string) => spokenOf(`<speak>${ssml}</speak>`, 'en-us');

describe('SSML', () => {
  it('starts with a speak element', () => {
    expect(spokenOf('  \n<speak>one</speak>', 'en-us')).toBe('one');
    expect(spokenOf('<!-- a > b -->\n<!----><speak>one</speak>', 'en-us')).toBe('one');
    expect(spokenOf('<!-- one --> two <speak>', 'en-us')).toBe('one two speak');
    expect(spokenOf('1 <speak>', 'en-us')).toBe('one speak');
    expect(spokenOf('<speaker> on', 'en-us')).toBe('speaker on');
    expect(spokenOf('a < b', 'en-us')).toBe('a b');
  });

  it('pauses for breaks after the preceding text', () => {
    const { clauses } = inside(
      'One<break time="1.5s"/>two <break strength="strong"/>three<break strength="none"/> four',
    );
    expect(clauses.map(({ pauseAfterMs }) => pauseAfterMs)).toEqual([1500, 800, 0]);
    expect(clauses[2]!.words.map(({ spoken }) => spoken)).toEqual(['three', 'four']);
  });

  it('pauses before the first word, and beyond the maximum of one pause', () => {
    const { clauses } = inside('<break time="10s"/><break time="300ms"/>One');
    expect(clauses.map(({ words, pauseAfterMs }) => [words.length, pauseAfterMs])).toEqual([
      [0, 10_000],
      [0, 300],
      [1, 0],
    ]);
  });

  it('ends a clause with a sentence and pauses after a paragraph', () => {
    const { clauses } = inside('<p><s>One</s><s>Two</s></p><p>Three</p>');
    expect(clauses.map(({ words, pauseAfterMs }) => [words[0]!.spoken, pauseAfterMs])).toEqual([
      ['One', 0],
      ['Two', 400],
      ['Three', 400],
    ]);
  });

  it.each([
    ['cardinal', '12', 'twelve'],
    ['number', '1999', 'one thousand nine hundred ninety-nine'],
    ['ordinal', '3', 'third'],
    ['digits', '1234', 'one two three four'],
    ['telephone', '4155550100', 'four one five, five five five, zero one zero zero'],
    ['telephone', '1-800-FLOWERS', 'one, eight zero zero, FLOWERS'],
    ['characters', 'AB1', 'A.B. one'],
    ['spell-out', 'abc', 'A.B.C.'],
    ['date', '2026-11-21', 'November twenty-first, twenty twenty-six'],
    ['time', '2:05pm', 'two oh five P.M.'],
    ['currency', '$5', 'five dollars'],
    ['fraction', '3/8', 'three eighths'],
    ['fraction', '2+1/2', 'two and a half'],
    ['unit', '5km', 'five kilometers'],
    ['cardinal', 'many', 'many'],
  ])('reads say-as %s of %s', (as, text, spoken) => {
    expect(said(`<say-as interpret-as="${as}">${text}</say-as>`)).toBe(spoken);
  });

  it('reads dates by their format', () => {
    const date = (format: string, text: string) =>
      said(`<say-as interpret-as="date" format="${format}">${text}</say-as>`);
    expect(date('dmy', '1/2/2026')).toBe('February first, twenty twenty-six');
    expect(date('mdy', '1/2/2026')).toBe('January second, twenty twenty-six');
    expect(date('md', '12-25')).toBe('December twenty-fifth');
    expect(date('y', '1999')).toBe('nineteen ninety-nine');
    expect(date('my', '11/2026')).toBe('November twenty twenty-six');
  });

  it('omits an expletive and keeps its word', () => {
    const { clauses } = inside('Oh <say-as interpret-as="expletive">darn</say-as> it');
    expect(clauses[0]!.words[1]).toEqual({ written: 'darn', spoken: '', phonemes: null });
  });

  it('speaks the alias of a substitution and reports the written word', () => {
    const { clauses } = inside('the <sub alias="World Wide Web Consortium">W3C</sub>.');
    expect(clauses[0]!.words[1]).toEqual({
      written: 'W3C.',
      spoken: 'World Wide Web Consortium.',
      phonemes: null,
    });
  });

  it('attaches phonemes to their word', () => {
    const { clauses } = inside(
      'a <phoneme alphabet="ipa" ph="təˈmɑːtoʊ">tomato</phoneme>, <phoneme ph="wʌn tuː">one two</phoneme>',
    );
    expect(clauses.flatMap(({ words }) => words)).toEqual([
      { written: 'a', spoken: 'a', phonemes: null },
      { written: 'tomato,', spoken: 'tomato,', phonemes: 'təˈmɑːtoʊ' },
      { written: 'one', spoken: 'one', phonemes: 'wʌn' },
      { written: 'two', spoken: 'two', phonemes: 'tuː' },
    ]);
  });

  it.each([
    ['rate="slow"', { rate: 0.75 }],
    ['rate="x-fast"', { rate: 1.75 }],
    ['rate="80%"', { rate: 0.8 }],
    ['rate="+20%"', { rate: 1.2 }],
    ['rate="-50%"', { rate: 0.5 }],
    ['rate="1.5"', { rate: 1.5 }],
    ['rate="9999%"', { rate: 4 }],
    ['pitch="high"', { pitchSemitones: 3 }],
    ['pitch="-2st"', { pitchSemitones: -2 }],
    ['pitch="+100%"', { pitchSemitones: 12 }],
    ['volume="+6dB"', { volumeDb: 6 }],
    ['volume="-100dB"', { volumeDb: -60 }],
    ['volume="silent"', { volumeDb: -Infinity }],
    ['rate="default" pitch="medium"', {}],
  ])('accepts prosody %s', (attributes, expected) => {
    const { clauses } = inside(`<prosody ${attributes}>one</prosody>`);
    const { rate, pitchSemitones, volumeDb } = clauses[0]!.prosody;
    const wanted = { rate: 1, pitchSemitones: 0, volumeDb: 0, ...expected };
    expect(rate).toBeCloseTo(wanted.rate);
    expect(pitchSemitones).toBeCloseTo(wanted.pitchSemitones);
    expect(volumeDb).toBe(wanted.volumeDb);
  });

  it('multiplies nested prosody rates and adds up the rest', () => {
    const { clauses } = inside(
      'a <prosody rate="50%" pitch="+2st">b <prosody rate="200%" pitch="+3st" volume="-6dB">c</prosody> d</prosody>, e',
    );
    expect(clauses.map(({ words, prosody }) => [words.map(({ written }) => written).join(' '), prosody])).toEqual([
      ['a', { rate: 1, pitchSemitones: 0, volumeDb: 0 }],
      ['b', { rate: 0.5, pitchSemitones: 2, volumeDb: 0 }],
      ['c', { rate: 1, pitchSemitones: 5, volumeDb: -6 }],
      ['d,', { rate: 0.5, pitchSemitones: 2, volumeDb: 0 }],
      ['e', { rate: 1, pitchSemitones: 0, volumeDb: 0 }],
    ]);
  });

  it('slows emphasised text', () => {
    expect(inside('<emphasis level="strong">now</emphasis>').clauses[0]!.prosody.rate).toBeLessThan(1);
    expect(inside('<emphasis level="reduced">now</emphasis>').clauses[0]!.prosody.volumeDb).toBeLessThan(0);
  });

  it('uses the language in xml:lang', () => {
    expect(
      spokenOf('<speak version="1.1" xmlns="http://www.w3.org/2001/10/synthesis" xml:lang="hi-IN">5%</speak>', 'en-us'),
    ).toBe('पांच प्रतिशत');
  });

  it('supports the five entities, references, comments and CDATA', () => {
    expect(said('R&amp;D &#65;&#x42; <!-- no --> <![CDATA[a < b]]>')).toBe('R. and D. AB a b');
  });

  it('counts written or spoken characters, without markup', () => {
    expect(inside('  One <break/>\n  two ').characters).toBe('One two'.length);
    expect(inside('Dial <say-as interpret-as="digits">112</say-as>.').characters).toBe('Dial 112.'.length);
    expect(inside('a <prosody rate="slow"> b </prosody> c').characters).toBe('a b c'.length);
    expect(inside('\n<p>\n  One\n</p>\n').characters).toBe('One'.length);
    expect(inside('<sub alias="World Wide Web">W3</sub>').characters).toBe(14);
  });

  it.each([
    [
      'an unknown element',
      '\n <audio src="x"/>',
      'SSML at line 2, column 2: <audio> is not supported; there are speak, p, s',
    ],
    [
      'an unknown attribute',
      '<break size="1"/>',
      'SSML at line 1, column 8: <break> has no attribute size; there are time, strength',
    ],
    ['another speak', '<speak/>', '<speak> is the outermost element'],
    ['a pause without unit', '<break time="5"/>', 'time="5" is not supported; allowed: seconds or milliseconds'],
    ['a long pause', '<break time="11s"/>', 'time="11s" is not supported; allowed: at most 10s'],
    ['many pauses', '<break time="10s"/>'.repeat(13), 'breaks add up to more than 120 s'],
    ['a strength', '<break strength="huge"/>', 'allowed: none, x-weak, weak, medium, strong, x-strong'],
    [
      'an interpretation',
      '<say-as interpret-as="poem">x</say-as>',
      'interpret-as="poem" is not supported; allowed: cardinal',
    ],
    ['no interpretation', '<say-as>x</say-as>', '<say-as> needs interpret-as'],
    ['a format', '<say-as interpret-as="date" format="xyz">x</say-as>', 'format="xyz" is not supported; allowed: mdy'],
    ['a rate', '<prosody rate="quick">x</prosody>', 'rate="quick" is not supported; allowed: x-slow'],
    ['a rate of zero', '<prosody rate="0%">x</prosody>', 'rate="0%" is not supported'],
    ['hertz', '<prosody pitch="150Hz">x</prosody>', 'pitch="150Hz" is not supported; allowed: x-low'],
    [
      'a contour',
      '<prosody contour="(0%,+20Hz)">x</prosody>',
      '<prosody> has no attribute contour; there are rate, pitch, volume',
    ],
    [
      'an alphabet',
      '<phoneme alphabet="x-sampa" ph="a">x</phoneme>',
      'alphabet="x-sampa" is not supported; allowed: ipa',
    ],
    ['no phonemes', '<phoneme ph="">x</phoneme>', 'ph="" is not supported; allowed: IPA'],
    ['commands among phonemes', '<phoneme ph="a]]b">x</phoneme>', 'ph="a]]b" is not supported; allowed: IPA'],
    ['an element in text', '<sub alias="x"><break/></sub>', '<sub> takes text alone, and no <break>'],
    ['no alias', '<sub>x</sub>', '<sub> needs an alias'],
    ['a long alias', `<sub alias="${'x'.repeat(300)}">x</sub>`, 'alias is longer than 250 characters'],
    ['another language within', '<s xml:lang="fr">x</s>', 'xml:lang belongs on <speak> or <lang>'],
    ['depth', '<prosody rate="slow">'.repeat(30), 'elements are nested more than 20 deep'],
    ['an ampersand', 'a & b', 'line 1, column 10: & is written &amp;'],
    ['an entity', '&nbsp;', 'line 1, column 8: & is written &amp;'],
    ['an open element', '<p>one', 'not well-formed SSML: line 1'],
    ['a document type', '<!DOCTYPE x>', 'not well-formed SSML: line 1'],
    ['an instruction', '<?php x?>', 'processing instructions are not allowed'],
  ])('rejects %s with reason and position', (_, ssml, message) => {
    expect(() => inside(ssml)).toThrow(ScriptError);
    expect(() => inside(ssml)).toThrow(message);
  });

  it('rejects document types, so that entities are never expanded', () => {
    const external = '<!DOCTYPE speak PUBLIC "-//W3C//DTD SYNTHESIS 1.0//EN" "synthesis.dtd"><speak>one</speak>';
    expect(() => read(external)).toThrow('a document type declaration is not allowed');
    const bomb = '<?xml version="1.0"?><!DOCTYPE speak [<!ENTITY a "aaaa">]><speak>&a;</speak>';
    expect(() => read(bomb)).toThrow('a document type declaration is not allowed');
  });
});
