import { TandemError } from '../../machines/errors.ts';
import type { LegEvent } from '../../machines/events.ts';
import type { MediaPlane } from '../../media/media-plane.ts';
import type { InboundCall, SipGateway } from '../../sip/sip-gateway.ts';
import type { SpeechEngines } from '../../speech/open-speech-engines.ts';
import type { SpeechRecognition } from '../../speech/speech-recognition.ts';
import type { SpeechSynthesis } from '../../speech/speech-synthesis.ts';
import type { CallRegistry } from '../call-registry.ts';
import type { ClusterPhones } from '../cluster/cluster-phones.ts';
import type { NodeDialer } from '../dialer.actor.ts';
import type { Observer } from './observer.ts';

/** Decorators of ports that notify the observer. */

export function observeDialer(dialer: NodeDialer, observer: Observer): NodeDialer {
  return replacing(dialer, {
    async place(request) {
      const onOutcome = observer.placementStarted();
      try {
        const placed = await dialer.place(request);
        onOutcome(placed.replayed ? 'replayed' : 'placed');
        return placed;
      } catch (error) {
        onOutcome(error instanceof TandemError ? error.code : 'failed');
        throw error;
      }
    },
  });
}

export function observeRegistry(registry: CallRegistry, observer: Observer): CallRegistry {
  return replacing(registry, {
    add(call) {
      registry.add(call);
      observer.callStarted(call);
    },
  });
}

export function observeSip(sip: SipGateway, observer: Observer): SipGateway {
  return replacing(sip, {
    dial(request) {
      const { callId, leg } = request;
      const onEvent = observer.legStarted({ callId, leg, transport: 'sip', direction: 'outbound' });
      return sip.dial({ ...request, onEvent: both(onEvent, request.onEvent) });
    },
    onCall: (listener) => sip.onCall((call) => listener(observeInbound(call, observer))),
  });
}

function observeInbound(call: InboundCall, observer: Observer): InboundCall {
  return replacing(call, {
    answer(request) {
      const { callId, leg } = request;
      const onEvent = observer.legStarted({ callId, leg, transport: 'sip', direction: 'inbound' });
      return call.answer({ ...request, onEvent: both(onEvent, request.onEvent) });
    },
  });
}

export function observePhones(phones: ClusterPhones, observer: Observer): ClusterPhones {
  return replacing(phones, {
    dial(dial) {
      const { call_id: callId, leg_id: leg } = dial.call;
      const onEvent = observer.legStarted({ callId, leg, transport: 'webrtc', direction: 'outbound' });
      return phones.dial({ ...dial, onEvent: both(onEvent, dial.onEvent) });
    },
  });
}

export function observeMedia(plane: MediaPlane, observer: Observer): MediaPlane {
  return replacing(plane, {
    async openSession(options) {
      const onState = observer.mediaStarted(options.sessionId);
      try {
        const session = await plane.openSession(options);
        onState('opened');
        const close = async () => {
          await session.close();
          onState('closed');
        };
        // A session also closes when its owner aborts.
        options.signal.addEventListener('abort', () => onState('closed'), { once: true });
        return replacing(session, { close });
      } catch (error) {
        onState('refused');
        throw error;
      }
    },
  });
}

export function observeEngines(engines: SpeechEngines, observer: Observer): SpeechEngines {
  return replacing(engines, {
    recognition: observeRecognition(engines.recognition, observer),
    synthesis: observeSynthesis(engines.synthesis, observer),
  });
}

function observeRecognition(recognition: SpeechRecognition, observer: Observer): SpeechRecognition {
  return replacing(recognition, {
    open(options) {
      if (options.mode !== 'live') return recognition.open(options);
      return recognition.open({
        ...options,
        onEvent(event) {
          if (event.type === 'utterance.recognised') observer.utteranceRecognised(event.lagMs);
          options.onEvent(event);
        },
      });
    },
  });
}

function observeSynthesis(synthesis: SpeechSynthesis, observer: Observer): SpeechSynthesis {
  return replacing(synthesis, {
    async *speak(request, signal) {
      const askedMs = performance.now();
      let hasAudio = false;
      for await (const part of synthesis.speak(request, signal)) {
        if (!hasAudio && part.audio.length > 0) {
          hasAudio = true;
          observer.speechStarted(performance.now() - askedMs);
        }
        yield part;
      }
    },
  });
}

function both(first: (event: LegEvent) => void, second: (event: LegEvent) => void): (event: LegEvent) => void {
  return (event) => {
    first(event);
    second(event);
  };
}

/** Proxies an object with some members replaced. Methods run on the original object, as private fields require. */
function replacing<Port extends object>(port: Port, members: Partial<Port>): Port {
  return new Proxy(port, {
    get(target, key) {
      if (Object.hasOwn(members, key)) return Reflect.get(members, key);
      const value: unknown = Reflect.get(target, key, target);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}
