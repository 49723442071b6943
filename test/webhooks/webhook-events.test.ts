import { describe, expect, test } from 'vitest';
import {
  MAX_WEBHOOK_BODY_BYTES,
  WEBHOOK_EVENTS,
  WEBHOOK_EXAMPLES,
  webhookBody,
} from '../../storage/queries/webhook-events.ts';
import * as fc from '../properties.ts';

const at = new Date('2026-03-01T12:00:00.123Z');
const transcript = (text: string) => ({ ...WEBHOOK_EXAMPLES['stt.completed'], text });
const bodyOf = (text: string) => webhookBody({ event: 'stt.completed', data: transcript(text), at });

test('the webhook events match the specification', () => {
  expect([...WEBHOOK_EVENTS].sort()).toEqual(
    [
      'tts.completed',
      'tts.failed',
      'stt.completed',
      'stt.failed',
      'voice.created',
      'voice.ready',
      'voice.failed',
      'trunk.down',
      'trunk.up',
      'call.initiated',
      'call.ringing',
      'call.answered',
      'call.bridged',
      'call.completed',
      'call.not_answered',
      'call.failed',
      'call.temporaryfailed',
    ].sort(),
  );
});

test.each(WEBHOOK_EVENTS)('the payload of %s contains event, timestamp and data', (event) => {
  expect(JSON.parse(webhookBody({ event, data: WEBHOOK_EXAMPLES[event], at }))).toEqual({
    event,
    timestamp: '2026-03-01T12:00:00.123Z',
    data: WEBHOOK_EXAMPLES[event],
  });
});

test('a test payload is marked as one', () => {
  const data = WEBHOOK_EXAMPLES['stt.failed'];
  expect(JSON.parse(webhookBody({ event: 'stt.failed', data, at, test: true })).data).toEqual({ ...data, test: true });
});

describe('webhook payload below 20 kB', () => {
  test('keeps a text that just fits, and truncates and marks one that is a byte longer', () => {
    const room = MAX_WEBHOOK_BODY_BYTES - Buffer.byteLength(bodyOf(''));
    const whole = bodyOf('x'.repeat(room));
    expect(Buffer.byteLength(whole)).toBe(MAX_WEBHOOK_BODY_BYTES);
    expect(JSON.parse(whole).data).toEqual(transcript('x'.repeat(room)));
    const { text, truncated } = JSON.parse(bodyOf('x'.repeat(room + 1))).data;
    expect(truncated).toBe(true);
    expect(text.length).toBeLessThan(room);
    expect(text.length).toBeGreaterThan(room - 100);
  });

  test('truncates an hour of speech between characters, in any script', () => {
    for (const letter of ['a', 'ठ', '😀', '\n', '\u0000', '"', '\\']) {
      const body = bodyOf(letter.repeat(100_000));
      expect(Buffer.byteLength(body)).toBeLessThanOrEqual(MAX_WEBHOOK_BODY_BYTES);
      expect(Buffer.byteLength(body)).toBeGreaterThan(MAX_WEBHOOK_BODY_BYTES - 100);
      const { text } = JSON.parse(body).data;
      expect(text).toBe(letter.repeat(text.length / letter.length));
    }
  });

  test('contains the start of any text', () => {
    const long = fc.string({ unit: 'binary', maxLength: 200 }).map((text) => text.repeat(200));
    fc.assert(
      fc.property(long, (text) => {
        const body = bodyOf(text);
        expect(Buffer.byteLength(body)).toBeLessThanOrEqual(MAX_WEBHOOK_BODY_BYTES);
        const { data } = JSON.parse(body);
        expect(text.startsWith(data.text)).toBe(true);
        expect(data.truncated ?? false).toBe(data.text.length < text.length);
      }),
    );
  });

  test('truncates long errors and names too', () => {
    const data = { voice_id: 'v1', error: 'e'.repeat(50_000) };
    const body = webhookBody({ event: 'voice.failed', data, at });
    expect(Buffer.byteLength(body)).toBeLessThanOrEqual(MAX_WEBHOOK_BODY_BYTES);
    expect(JSON.parse(body).data).toMatchObject({ voice_id: 'v1', truncated: true });
  });
});
