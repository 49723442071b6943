import { describe, expect, it } from 'vitest';
import type { RecognisedWord, RecognitionEvent } from '../../../machines/utterances.ts';
import { SpeakerLabels } from '../../../speech/recognition/speaker-labels.ts';
import { Utterance } from '../../../speech/recognition/utterance.ts';
import { createFakeEngine } from '../fake-engine.ts';
import { spokenUtterances } from '../spoken.ts';
import { DeskFixture } from './spoken-to-desk.ts';

const BY_VOICE = { by: 'voice', minSpeakers: null, maxSpeakers: 2 } as const;

const WORD: RecognisedWord = { word: 'x', startMs: 0, endMs: 500, confidence: 1, speaker: null, original: null };

function utteranceOf(samples: Int16Array): Utterance {
  const utterance = new Utterance({ utteranceId: 0, channel: 0, startMs: 0 });
  utterance.append(samples);
  return utterance;
}

describe('diarised streams', () => {
  it('label words immediately if live', async () => {
    await using fixture = new DeskFixture([createFakeEngine()]);
    const speaker = await fixture.open('live', { diarization: BY_VOICE });
    speaker.say([1, 2]);
    const event = await speaker.events.first(({ type }) => type === 'utterance.recognised');
    expect(event).toMatchObject({ recognition: { words: [{ speaker: 'speaker_1' }, { speaker: 'speaker_1' }] } });
  });

  it('report whether speakers were labelled when the utterance began', async () => {
    await using fixture = new DeskFixture([createFakeEngine()]);
    const speaker = await fixture.open('live', { hypothesisEveryMs: 1 });
    const utteranceId = speaker.begin();
    speaker.go(utteranceId, [1]);
    await speaker.events.first(({ type }) => type === 'utterance.hypothesis');
    await fixture.desk.configure(speaker.key, { diarization: BY_VOICE });
    speaker.end(utteranceId);
    speaker.say([2]);
    const isSecond = (event: RecognitionEvent) => event.type === 'utterance.recognised' && event.utteranceId === 1;
    await speaker.events.first(isSecond);
    expect(speaker.events.all.filter(({ type }) => type === 'utterance.recognised')).toMatchObject([
      { isDiarized: false, recognition: { words: [{ speaker: null }] } },
      { isDiarized: true, recognition: { words: [{ speaker: 'speaker_1' }] } },
    ]);
  });

  it('label words at the end of a batch', async () => {
    await using fixture = new DeskFixture([createFakeEngine()]);
    const speaker = await fixture.open('batch', { diarization: BY_VOICE });
    speaker.say([1]);
    speaker.say([2]);
    await speaker.credits.count(2);
    expect(speaker.events.all).toEqual([]);
    speaker.hangUp();
    await speaker.events.first(({ type }) => type === 'recognition.ended');
    expect(speaker.outcomes).toEqual([
      [0, '1'],
      [1, '2'],
    ]);
  });

  it('still label words when the embedding model breaks', async () => {
    let asked = 0;
    const embed = async (): Promise<never> => {
      asked += 1;
      throw new Error('the model broke');
    };
    const broken: string[] = [];
    const onBroken = (detail: string) => broken.push(detail);
    const labels = new SpeakerLabels({ mode: 'live', embedder: { embed }, onBroken });
    const { samples } = spokenUtterances()[0]!;
    for (let time = 0; time < 2; time++) {
      const [word] = await labels.label(utteranceOf(samples), [WORD], BY_VOICE);
      expect(word?.speaker).toBe('speaker_1');
    }
    expect(asked).toBe(1);
    expect(broken).toEqual(['the model broke']);
  });
});
