import { beforeEach, describe, expect, it } from 'vitest';
import { createCallRegistry } from '../../../actors/call-registry.ts';
import type { ClusterPhones } from '../../../actors/cluster/cluster-phones.ts';
import type { NodeDialer } from '../../../actors/dialer.actor.ts';
import {
  observeDialer,
  observeEngines,
  observeMedia,
  observePhones,
  observeRegistry,
  observeSip,
} from '../../../actors/observability/observed-ports.ts';
import { combineObservers, type Observer } from '../../../actors/observability/observer.ts';
import type { BrowserDial } from '../../../actors/phones/browser-leg.ts';
import { TandemError } from '../../../machines/errors.ts';
import type { RecognitionEvent } from '../../../machines/utterances.ts';
import type { DialRequest, InboundCall } from '../../../sip/sip-gateway.ts';
import type { SpeechEngines } from '../../../speech/open-speech-engines.ts';
import type {
  OpenRecognitionOptions,
  RecognitionStream,
  SpeechRecognition,
} from '../../../speech/speech-recognition.ts';
import type { SpeechSynthesis, SpokenPart } from '../../../speech/speech-synthesis.ts';
import { callOf, PLACEMENT } from '../../http/fake-dialer.ts';
import { partial } from '../../partial.ts';
import { callRow, createTestLogger, FakeMediaPlane, FakeSip, liveCall, remoteMedia } from '../fakes.ts';

let seen: unknown[];

const observer: Observer = {
  placementStarted: () => (outcome) => void seen.push(['placement', outcome]),
  callStarted: (call) => void seen.push(['call', call]),
  legStarted: (leg) => {
    seen.push(['leg', leg]);
    return (event) => void seen.push([leg.leg, event.type]);
  },
  mediaStarted: (sessionId) => (state) => void seen.push([sessionId, state]),
  utteranceRecognised: (lagMs) => void seen.push(['utterance', lagMs]),
  speechStarted: (firstByteMs) => void seen.push(['speech', firstByteMs >= 0]),
  deliveryAttempted: (delivery) => void seen.push(['delivery', delivery]),
};

beforeEach(() => {
  seen = [];
});

const DIAL = { callId: 'call_1', leg: 'agent', signal: new AbortController().signal } as DialRequest;

describe('observed dialer', () => {
  const placed = { placed: true, call: callOf(PLACEMENT) };

  it.each<[string, NodeDialer['place']]>([
    ['placed', async () => ({ ...placed, replayed: false })],
    ['replayed', async () => ({ ...placed, replayed: true })],
    ['no_free_channel', () => Promise.reject(new TandemError('no_free_channel', 'full'))],
    ['failed', () => Promise.reject(new TypeError('a defect'))],
  ])('reports the outcome %s, and returns or throws like the dialer', async (outcome, place) => {
    const dialer = observeDialer(partial<NodeDialer>({ place }), observer);
    const observed = await Promise.allSettled([dialer.place(PLACEMENT)]);
    expect(observed).toEqual(await Promise.allSettled([place(PLACEMENT)]));
    expect(seen).toEqual([['placement', outcome]]);
  });
});

describe('observed registry', () => {
  it('reports calls that are already registered', () => {
    const registry = observeRegistry(createCallRegistry(), observer);
    const call = liveCall(callRow({ callId: 'call_1' }));
    registry.add(call);
    expect(seen).toEqual([['call', call]]);
    expect(registry.get('call_1')).toBe(call);
    registry.remove('call_1');
    expect(registry.list()).toEqual([]);
  });
});

describe('observed legs', () => {
  it("report each INVITE and its leg's events before their owner receives them", () => {
    const fake = new FakeSip();
    const sip = observeSip(fake, observer);
    sip.dial({ ...DIAL, onEvent: ({ type }) => void seen.push(['owner', type]) });
    fake.legs[0]!.emit({ type: 'leg.answered', sipStatus: 200, media: remoteMedia() });
    expect(seen).toEqual([
      ['leg', { callId: 'call_1', leg: 'agent', transport: 'sip', direction: 'outbound' }],
      ['agent', 'leg.answered'],
      ['owner', 'leg.answered'],
    ]);
    expect(sip.state).toBe('connected');
    fake.become('disconnected');
    expect(sip.state).toBe('disconnected');
  });

  it('report an inbound call when it is answered', () => {
    const fake = new FakeSip();
    const sip = observeSip(fake, observer);
    let taken: InboundCall | null = null;
    sip.onCall((call) => {
      taken = call;
    });
    fake.bring(partial<InboundCall>({ called: '911', answer: (request) => fake.dial({ ...DIAL, ...request }) }));
    expect([taken!.called, seen]).toEqual(['911', []]);
    taken!.answer({ ...DIAL, leg: 'customer', onEvent: () => {} });
    expect(fake.legs).toHaveLength(1);
    expect(seen).toEqual([['leg', { callId: 'call_1', leg: 'customer', transport: 'sip', direction: 'inbound' }]]);
  });

  it('report browsers like phones', () => {
    const fake = new FakeSip();
    const desk = partial<ClusterPhones>({ dial: ({ onEvent }) => fake.dial({ ...DIAL, onEvent }) });
    const call = { call_id: 'call_1', leg_id: 'agent' } as BrowserDial['call'];
    observePhones(desk, observer).dial(partial<BrowserDial>({ call, onEvent: () => {} }));
    fake.legs[0]!.emit({ type: 'leg.refused', sipStatus: 480, hangupCause: 'NO_USER_RESPONSE', detail: '' });
    expect(seen).toEqual([
      ['leg', { callId: 'call_1', leg: 'agent', transport: 'webrtc', direction: 'outbound' }],
      ['agent', 'leg.refused'],
    ]);
  });
});

describe('observed media plane', () => {
  const options = () => {
    const abort = new AbortController();
    return { abort, sessionId: 'call_1', parties: ['agent'], signal: abort.signal, onEvent: () => {} };
  };

  it('reports opened and closed sessions, even abandoned ones', async () => {
    const plane = observeMedia(new FakeMediaPlane(), observer);
    const session = await plane.openSession(options());
    await session.close();
    const { abort, ...second } = options();
    await plane.openSession({ ...second, sessionId: 'call_2' });
    abort.abort();
    expect(seen).toEqual([
      ['call_1', 'opened'],
      ['call_1', 'closed'],
      ['call_2', 'opened'],
      ['call_2', 'closed'],
    ]);
  });

  it('reports sessions that fail to open', async () => {
    const fake = new FakeMediaPlane();
    fake.refuse();
    await expect(observeMedia(fake, observer).openSession(options())).rejects.toMatchObject({
      code: 'no_free_channel',
    });
    expect(seen).toEqual([['call_1', 'refused']]);
  });
});

describe('observed speech engines', () => {
  async function* parts(): AsyncGenerator<SpokenPart, void> {
    for (const length of [0, 4, 4]) yield { audio: new Uint8Array(length), words: [], durationMs: 1 };
  }

  function enginesWith(onOpen: (options: OpenRecognitionOptions) => void = () => {}): SpeechEngines {
    const open = async (options: OpenRecognitionOptions) => {
      onOpen(options);
      return {} as RecognitionStream;
    };
    return partial<SpeechEngines>({
      recognition: partial<SpeechRecognition>({ open }),
      synthesis: partial<SpeechSynthesis>({ speak: parts }),
    });
  }

  it('report the first audio of a synthesis request once', async () => {
    const { synthesis } = observeEngines(enginesWith(), observer);
    const lengths: number[] = [];
    for await (const part of synthesis.speak(partial({}), new AbortController().signal)) {
      lengths.push(part.audio.length);
      expect(seen).toHaveLength(lengths.length > 1 ? 1 : 0);
    }
    expect(lengths).toEqual([0, 4, 4]);
    expect(seen).toEqual([['speech', true]]);
  });

  it.each(['live', 'batch'] as const)('report final transcripts of live audio only: %s', async (mode) => {
    const received: string[] = [];
    const engines = enginesWith(({ onEvent }) => {
      onEvent({ type: 'utterance.recognised', lagMs: 700 } as RecognitionEvent);
      onEvent({ type: 'recognition.ended' });
    });
    const onEvent = ({ type }: RecognitionEvent) => void received.push(type);
    await observeEngines(engines, observer).recognition.open({ mode, onEvent } as OpenRecognitionOptions);
    expect(received).toEqual(['utterance.recognised', 'recognition.ended']);
    expect(seen).toEqual(mode === 'live' ? [['utterance', 700]] : []);
  });
});

describe('combined observers', () => {
  it('notify each observer, and log the failure of one', () => {
    const logger = createTestLogger();
    const fails = () => {
      throw new Error('a defect');
    };
    const broken: Observer = {
      ...{ placementStarted: () => fails, callStarted: fails, legStarted: fails, mediaStarted: fails },
      ...{ utteranceRecognised: fails, speechStarted: fails, deliveryAttempted: fails },
    };
    const both = combineObservers([broken, observer], logger);
    both.placementStarted()('placed');
    both.legStarted({ callId: 'call_1', leg: 'agent', transport: 'sip', direction: 'outbound' })({
      type: 'leg.lost',
      detail: '',
    });
    both.utteranceRecognised(5);
    both.deliveryAttempted({ kind: 'webhook', outcome: 'gone' });
    expect(seen).toEqual([
      ['placement', 'placed'],
      ['leg', { callId: 'call_1', leg: 'agent', transport: 'sip', direction: 'outbound' }],
      ['agent', 'leg.lost'],
      ['utterance', 5],
      ['delivery', { kind: 'webhook', outcome: 'gone' }],
    ]);
    expect(logger.messages('error')).toEqual(new Array(4).fill('observer failed'));
  });
});
