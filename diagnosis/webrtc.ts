import { findWorker, HOW_TO_INSTALL } from '../media/webrtc/worker-binary.ts';
import { type Finding, ok, warn } from './finding.ts';

/** Checks that browsers can take part in calls. */
export function checkWebRtc(): Finding {
  const worker = findWorker();
  if (worker.path !== null) return ok('WebRTC', `browsers can take part in calls, by ${worker.path}`);
  return warn('WebRTC', `Browsers cannot take part in calls: ${worker.reason}.`, HOW_TO_INSTALL);
}
