import { healthText } from '../text/trunks.ts';

/** Part of a trunk. */
interface Checked {
  health: { mode: 'options' | 'none' };
  reachability: { state: 'up' | 'down' | 'unknown'; reason: keyof typeof healthText.reasons };
}

/** Name and reason of a state. Without health checks, it stays unknown until a call shows whether the carrier responds. */
export function reachabilityText({ health, reachability: { state, reason } }: Checked) {
  return health.mode === 'none' && state === 'unknown'
    ? { name: healthText.unchecked, reason: healthText.uncheckedReason }
    : { name: healthText[state], reason: healthText.reasons[reason] };
}
