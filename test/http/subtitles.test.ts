import { expect, it } from 'vitest';
import { subtitlesOf } from '../../http/subtitles.ts';

const segments = [
  { start: 0, end: 1.0006, text: 'Tom & <b>Jerry</b>\n\nagain' },
  { start: 2, end: 3, text: ' ' },
  { start: 3599.9996, end: 3661.5, text: 'bye' },
];

it('writes SubRip with numbered cues, and skips segments without text', () => {
  expect(subtitlesOf(segments, 'srt')).toBe(
    '1\n00:00:00,000 --> 00:00:01,001\nTom & <b>Jerry</b> again\n\n2\n01:00:00,000 --> 01:01:01,500\nbye\n',
  );
});

it('writes WebVTT with escaped text', () => {
  expect(subtitlesOf(segments, 'vtt')).toBe(
    'WEBVTT\n\n00:00:00.000 --> 00:00:01.001\nTom &amp; &lt;b&gt;Jerry&lt;/b&gt; again\n\n01:00:00.000 --> 01:01:01.500\nbye\n',
  );
});

it('writes an empty document for a file without speech', () => {
  expect([subtitlesOf([], 'srt'), subtitlesOf([], 'vtt')]).toEqual(['', 'WEBVTT\n']);
});

it('gives a cue a duration when its only word has none, because players skip an empty cue', () => {
  const word = [{ start: 2.0001, end: 2.0004, text: 'bye' }];
  expect(subtitlesOf(word, 'vtt')).toBe('WEBVTT\n\n00:00:02.000 --> 00:00:02.500\nbye\n');
  expect(subtitlesOf(word, 'srt')).toBe('1\n00:00:02,000 --> 00:00:02,500\nbye\n');
});
