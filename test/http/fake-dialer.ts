import type { PublicCall, PublicCallEvent, PublicLeg } from '../../actors/call-view.ts';
import type { Dialer, NewLeg, PlaceCallRequest, PlacedCall, RequestedSound } from '../../actors/dialer.ts';
import type { CallControl } from '../../machines/call-control.ts';

/** A dialer that places no call: records requests and returns what the test sets. */
export class FakeDialer implements Dialer {
  readonly placed: PlaceCallRequest[] = [];
  readonly hungUp: { workspaceId: string; callId: string }[] = [];
  readonly refreshed: string[] = [];
  readonly watchers = new Map<string, Set<(event: PublicCallEvent) => void>>();
  /** Throws to refuse. */
  onPlace: (request: PlaceCallRequest) => PlacedCall | Promise<PlacedCall> = (request) => ({
    placed: true,
    replayed: false,
    call: callOf(request),
  });
  onHangup: (target: { workspaceId: string; callId: string }) => PublicCall = ({ callId }) =>
    callOf({ ...PLACEMENT, referenceId: null }, callId);
  onRefresh: (callId: string) => boolean | Promise<boolean> = () => false;
  #onWatch: () => void = () => undefined;

  async place(request: PlaceCallRequest): Promise<PlacedCall> {
    this.placed.push(request);
    return await this.onPlace(request);
  }

  /** Throws to refuse. */
  onCheckUrl: (url: string) => string = (url) => url;

  async checkCallbackUrl(url: string): Promise<string> {
    return this.onCheckUrl(url);
  }

  /** Throws to refuse. */
  onCheckSpeech: (speech: Parameters<Dialer['checkSpeech']>[0]) => void = () => undefined;

  async checkSpeech(speech: Parameters<Dialer['checkSpeech']>[0]): Promise<void> {
    this.onCheckSpeech(speech);
  }

  async hangup(target: { workspaceId: string; callId: string }): Promise<PublicCall> {
    this.hungUp.push(target);
    return this.onHangup(target);
  }

  readonly controlled: CallControl[] = [];
  legs: PublicLeg[] = [];
  /** Throws to refuse. */
  onControl: (control: CallControl) => void = () => undefined;

  async control({ callId }: { workspaceId: string; callId: string }, control: CallControl): Promise<PublicCall> {
    this.onControl(control);
    this.controlled.push(control);
    return { ...callOf({ ...PLACEMENT, referenceId: null }, callId), legs: this.legs };
  }

  readonly added: NewLeg[] = [];
  /** Throws to refuse. */
  onAddLeg: (leg: NewLeg) => void = () => undefined;

  async addLeg(_target: { workspaceId: string; callId: string }, leg: NewLeg) {
    this.onAddLeg(leg);
    this.added.push(leg);
    return legOf(leg);
  }

  readonly played: RequestedSound[] = [];

  async play(_target: { workspaceId: string; callId: string }, sound: RequestedSound) {
    this.played.push(sound);
    return { playbackId: 'play_00000000-0000-4000-8000-000000000001' };
  }

  watch(callId: string, listener: (event: PublicCallEvent) => void, signal: AbortSignal): void {
    const listeners = this.watchers.get(callId) ?? new Set();
    this.watchers.set(callId, listeners.add(listener));
    signal.addEventListener('abort', () => listeners.delete(listener), { once: true });
    this.#onWatch();
  }

  async refreshRecording(callId: string): Promise<boolean> {
    this.refreshed.push(callId);
    return await this.onRefresh(callId);
  }

  publish(callId: string, event: PublicCallEvent): void {
    for (const listener of this.watchers.get(callId) ?? []) listener(event);
  }

  watcherCount(callId: string): number {
    return this.watchers.get(callId)?.size ?? 0;
  }

  /** Runs between the subscription and the reading of stored events. */
  set onWatch(run: () => void) {
    this.#onWatch = run;
  }
}

/** A request with required fields only. */
export const PLACEMENT: PlaceCallRequest = {
  workspaceId: '',
  placedVia: 'api_key',
  apiKeyId: null,
  apiKeyName: null,
  userId: null,
  agentNumber: '+919810000001',
  customerNumber: '+919810000002',
  did: null,
  trunkId: null,
  referenceId: null,
  callbackUrl: null,
  callbackSecret: null,
  agentRingTimeoutS: 30,
  customerRingTimeoutS: 45,
  maxDurationS: 3600,
  record: false,
  transcribe: false,
  announce: null,
  whisper: null,
  voiceId: null,
  metadata: null,
};

export function legOf({ role, mode, endpoint }: NewLeg): PublicLeg {
  return {
    leg_id: 'leg_00000000-0000-4000-8000-000000000001',
    role,
    endpoint:
      endpoint.type === 'phone'
        ? endpoint
        : { type: 'webrtc', user_id: role === 'supervisor' ? null : endpoint.userId },
    state: 'dialing',
    muted: false,
    mode,
    joined_at: null,
    left_at: null,
    hangup_cause: null,
    quality: null,
  };
}

export function callOf(request: PlaceCallRequest, callId = 'call-1'): PublicCall {
  return {
    call_id: callId,
    reference_id: request.referenceId ?? 'qc2c-minted',
    outbound_trunk_id: request.trunkId ?? '00000000-0000-4000-8000-000000000000',
    did: request.did ?? '+911140000001',
    agent_number: request.agentNumber,
    customer_number: request.customerNumber,
    direction: 'outbound',
    state: 'initiated',
    call_done: false,
    terminal_event: null,
    hangup_cause: null,
    leg: null,
    error: null,
    error_detail: null,
    talk_seconds: null,
    total_seconds: null,
    start_time: null,
    answer_time: null,
    end_time: null,
    metadata: request.metadata,
    record_requested: request.record,
    recording_id: null,
    recording_status: null,
    recording_available: false,
    transcribe_requested: request.transcribe,
    announce_requested: request.announce !== null,
    whisper_requested: request.whisper !== null,
    callback_url: request.callbackUrl,
    callback_secret_last4: request.callbackSecret?.slice(-4) ?? null,
    cost_usd: null,
    legs_cost_usd: null,
    speech_cost_usd: null,
    billing_status: null,
    placed_via: request.placedVia,
    api_key_id: request.apiKeyId,
    api_key_name: request.apiKeyName,
    created_by_user_id: request.userId,
    created_at: '2026-01-02T03:04:05.678Z',
    legs: [],
    quality: null,
  };
}
