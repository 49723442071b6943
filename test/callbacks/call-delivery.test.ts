import { expect, test } from 'vitest';
import type { PublicCall } from '../../actors/call-view.ts';
import { buildCallDelivery } from '../../actors/callbacks/call-delivery.ts';

const call: PublicCall = {
  call_id: 'call_1',
  reference_id: 'order-7',
  outbound_trunk_id: '6f6a1a0e-6c0f-4b39-9a43-0d9f4b1f8e11',
  did: '+918045678901',
  agent_number: '+919876543210',
  customer_number: '+919876543211',
  direction: 'outbound',
  state: 'completed',
  call_done: true,
  terminal_event: 'call.completed',
  hangup_cause: 'NORMAL_CLEARING',
  leg: null,
  error: null,
  error_detail: null,
  talk_seconds: 42,
  total_seconds: 60,
  start_time: '2026-03-01T12:00:00.000Z',
  answer_time: '2026-03-01T12:00:18.000Z',
  end_time: '2026-03-01T12:01:00.000Z',
  metadata: { z: 1, a: ['é', null], nested: { order: 7 } },
  record_requested: false,
  recording_id: null,
  recording_status: null,
  transcribe_requested: false,
  announce_requested: false,
  whisper_requested: false,
  recording_available: false,
  callback_url: 'https://hooks.example.com/calls?token=x',
  callback_secret_last4: 'ters',
  cost_usd: 0.0105,
  legs_cost_usd: null,
  speech_cost_usd: null,
  billing_status: 'billed',
  placed_via: 'api_key',
  api_key_id: 1,
  api_key_name: 'main',
  created_by_user_id: 1,
  created_at: '2026-03-01T12:00:00.000Z',
  legs: [],
  quality: null,
};
const event = {
  event: 'call.completed',
  eventId: '0d1f8f6e-1b1e-4f6e-8e54-2b9a6f3f5c11',
  sequence: 4,
  at: new Date('2026-03-01T12:01:00.000Z'),
};
const secretEncrypted = Buffer.from('sealed');

test('a call delivery contains exactly the specified fields, and is due at the time of its event', () => {
  const delivery = buildCallDelivery({ call, event, secretEncrypted, id: 'd1' });
  expect(delivery).toMatchObject({
    id: 'd1',
    url: 'https://hooks.example.com/calls?token=x',
    secretEncrypted,
    nextAttemptAt: event.at,
  });
  const body = delivery?.body ?? '';
  expect(JSON.parse(body)).toEqual({
    event: 'call.completed',
    event_id: '0d1f8f6e-1b1e-4f6e-8e54-2b9a6f3f5c11',
    sequence: 4,
    timestamp: '2026-03-01T12:01:00.000Z',
    call_id: 'call_1',
    reference_id: 'order-7',
    metadata: call.metadata,
    data: { call },
  });
  expect(body).toContain('"metadata":{"z":1,"a":["é",null],"nested":{"order":7}}');
});

test('a call without callback gets no delivery', () => {
  expect(buildCallDelivery({ call: { ...call, callback_url: null }, event, secretEncrypted })).toBeNull();
  expect(buildCallDelivery({ call, event, secretEncrypted: null })).toBeNull();
});

test('a call delivery is named after the terminal event', () => {
  const delivery = buildCallDelivery({ call, event: { ...event, event: 'call.ended' }, secretEncrypted });
  expect(JSON.parse(delivery?.body ?? '')).toMatchObject({ event: 'call.completed' });
});

test('a call delivery gets a unique id unless one is given', () => {
  const ids = [1, 2].map(() => buildCallDelivery({ call, event, secretEncrypted })?.id);
  expect(new Set(ids).size).toBe(2);
});
