import type { Remembered } from './phone-memory.ts';
import type { ServerCall } from './phone-messages.ts';
import type { Purpose } from './phone-state.ts';

export interface PhoneClientOptions {
  purpose: Purpose;
  /** Rings only for this call. Default: all calls of the user. */
  callId?: string;
  /** Whether to answer a call at once. */
  answersItself?: (call: ServerCall) => boolean;
  /** Sends silence instead of the microphone, until `speak`. */
  isSilent?: boolean;
  /** Receives the state that `start` needs after a reload; null when the phone is off. */
  remember?: (phone: Remembered | null) => void;
}
