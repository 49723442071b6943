import { describe, expect, it } from 'vitest';
import { presentCall, presentCallEvent } from '../../actors/call-view.ts';
import type { CallRow } from '../../storage/queries/calls.ts';
import { NOW } from '../storage/seed.ts';
import { callRow } from './fakes.ts';

/** Fields of the Call table of the specification, in order. */
const SPECIFIED = [
  ...['call_id', 'reference_id', 'outbound_trunk_id', 'did', 'agent_number', 'customer_number', 'state', 'call_done'],
  ...['terminal_event', 'hangup_cause', 'leg', 'error', 'error_detail', 'talk_seconds', 'total_seconds', 'start_time'],
  ...['answer_time', 'end_time', 'metadata', 'record_requested', 'recording_id', 'recording_status'],
  ...['recording_available', 'callback_url', 'callback_secret_last4', 'cost_usd', 'billing_status', 'placed_via'],
  ...['api_key_id', 'api_key_name', 'created_by_user_id', 'created_at'],
];
const BEYOND = [
  'direction',
  'legs',
  'legs_cost_usd',
  'quality',
  'transcribe_requested',
  'announce_requested',
  'whisper_requested',
  'speech_cost_usd',
];

const FINISHED: CallRow = callRow({
  callId: 'call_1',
  workspaceId: 'w',
  trunkId: 'd3b07384-d9a0-4c9b-8f5e-000000000001',
  state: 'completed',
  terminalEvent: 'call.completed',
  hangupCause: 'NORMAL_CLEARING',
  leg: 'customer',
  startTime: NOW,
  answerTime: new Date('2026-01-02T03:04:15.000Z'),
  endTime: new Date('2026-01-02T03:05:15.010Z'),
  talkSeconds: 61,
  totalSeconds: 70,
  metadata: { order: { id: 7 }, note: 'नमस्ते' },
  recordRequested: true,
  recordingId: 'a-recording',
  recordingStatus: 'uploaded',
  callbackUrl: 'https://example.com/hook',
  callbackSecretEncrypted: Buffer.from('sealed'),
  callbackSecretLast4: '9876',
  costNano: 61_000_000n,
  billingStatus: 'billed',
  apiKeyId: 4,
  apiKeyName: 'production',
  createdByUserId: 5,
});

describe('presentCall', () => {
  it('reports legs measured before encryption existed as unencrypted', () => {
    const old = { codec: 'PCMU', packets_received: 9, packets_lost: 0, jitter_ms: 1, mos: 4.4, snr_db: null };
    const encrypted = { ...old, encryption: 'AEAD_AES_128_GCM' };
    const quality = { agent: old, customer: encrypted } as CallRow['quality'];
    expect(presentCall({ ...FINISHED, quality }).quality).toEqual({
      agent: { ...old, encryption: null },
      customer: encrypted,
    });
  });

  it('returns every specified field, and only documented extensions', () => {
    for (const row of [FINISHED, callRow()]) {
      expect(Object.keys(presentCall(row)).sort()).toEqual([...SPECIFIED, ...BEYOND].sort());
    }
  });

  it('returns each field of a finished call', () => {
    expect(presentCall(FINISHED)).toEqual({
      call_id: 'call_1',
      reference_id: 'reference-1',
      outbound_trunk_id: 'd3b07384-d9a0-4c9b-8f5e-000000000001',
      did: '+911140000001',
      agent_number: '+919810000001',
      customer_number: '+919810000002',
      state: 'completed',
      call_done: true,
      terminal_event: 'call.completed',
      hangup_cause: 'NORMAL_CLEARING',
      leg: 'customer',
      error: null,
      error_detail: null,
      talk_seconds: 61,
      total_seconds: 70,
      start_time: '2026-01-02T03:04:05.678Z',
      answer_time: '2026-01-02T03:04:15.000Z',
      end_time: '2026-01-02T03:05:15.010Z',
      metadata: { order: { id: 7 }, note: 'नमस्ते' },
      record_requested: true,
      recording_id: 'a-recording',
      recording_status: 'uploaded',
      recording_available: true,
      callback_url: 'https://example.com/hook',
      callback_secret_last4: '9876',
      cost_usd: 0.061,
      billing_status: 'billed',
      placed_via: 'api_key',
      api_key_id: 4,
      api_key_name: 'production',
      created_by_user_id: 5,
      created_at: '2026-01-02T03:04:05.678Z',
      direction: 'outbound',
      quality: null,
      transcribe_requested: false,
      announce_requested: false,
      whisper_requested: false,
      legs_cost_usd: null,
      legs: [],
      speech_cost_usd: null,
    });
  });

  it('returns null for unknown values and omits no field', () => {
    const call = presentCall(callRow());
    for (const field of ['terminal_event', 'answer_time', 'end_time', 'talk_seconds', 'cost_usd', 'recording_id']) {
      expect(call, field).toHaveProperty(field, null);
    }
  });

  it('omits the sealed secret, the workspace and the owner', () => {
    const shown = JSON.stringify(presentCall({ ...FINISHED, workspaceId: 'workspace-x', ownerNode: 'node-x' }));
    for (const inner of ['sealed', 'workspace-x', 'node-x', FINISHED.ownerBoot]) expect(shown).not.toContain(inner);
  });

  for (const [state, done] of Object.entries({
    pending: false,
    initiated: false,
    bridged: false,
    unknown: false,
    completed: true,
    failed: true,
    rejected: true,
  })) {
    it(`sets call_done to ${done} when ${state}`, () => {
      expect(presentCall(callRow({ state: state as CallRow['state'] })).call_done).toBe(done);
    });
  }

  it('returns the phone of a leg that took the place of an agent in a browser', () => {
    const leg = { number: null, mode: null, muted: false, joinedAt: null, leftAt: null, hangupCause: null };
    const legs = [
      { ...leg, legId: 'agent', role: 'agent', state: 'ended' },
      { ...leg, legId: 'customer', role: 'customer', state: 'answered' },
      { ...leg, legId: 'leg_1', role: 'agent', state: 'answered', number: '+919812345678' },
    ] satisfies CallRow['legs'];
    const call = presentCall({ ...FINISHED, agentNumber: null, agentUserId: 42, legs });
    expect(call.legs.map(({ endpoint }) => endpoint)).toEqual([
      { type: 'webrtc', user_id: 42 },
      { type: 'phone', number: FINISHED.customerNumber },
      { type: 'phone', number: '+919812345678' },
    ]);
  });

  it('offers a recording only after its upload', () => {
    for (const recordingStatus of ['recording', 'processing', 'failed', null] as const) {
      expect(presentCall({ ...FINISHED, recordingStatus }).recording_available, String(recordingStatus)).toBe(false);
    }
  });
});

describe('presentCallEvent', () => {
  const event = {
    callId: 'call_1',
    sequence: 3,
    eventId: 'e',
    event: 'agent.ringing',
    state: 'initiated' as const,
    leg: 'agent' as const,
    sipStatus: 180,
    hangupCause: null,
    detail: null,
    at: NOW,
  };

  it('reports no delivery for a newly stored event', () => {
    expect(presentCallEvent(event)).toEqual({
      sequence: 3,
      event: 'agent.ringing',
      state: 'initiated',
      leg: 'agent',
      sip_status: 180,
      hangup_cause: null,
      at: '2026-01-02T03:04:05.678Z',
      detail: null,
      data: null,
      transcript: null,
      delivery: null,
    });
  });

  it('reports the state of the callback', () => {
    const delivery = { status: 'pending' as const, attempts: 2, lastHttpStatus: 503, nextAttemptAt: NOW };
    expect(presentCallEvent({ ...event, delivery }).delivery).toEqual({
      status: 'pending',
      attempts: 2,
      last_http_status: 503,
      next_attempt_at: '2026-01-02T03:04:05.678Z',
    });
  });
});
