import type { operations } from '@tandem/client';

type RuleBody = NonNullable<operations['setInboundRule']['requestBody']>['content']['application/json'];
type Decision = NonNullable<RuleBody['fallback']>;

/** Builds the rule from a form, which contains only the fields of its action. */
export function ruleOf(fields: Record<string, string>): RuleBody {
  const action = fields.action as RuleBody['action'];
  if (action === 'ask') {
    const fallback = decisionOf(fields.fallback as Decision['action'], fields);
    return { action, url: fields.url!.trim(), secret: fields.secret!, fallback };
  }
  const { callback_url: url, callback_secret: secret } = fields;
  const callback = action === 'forward' && url ? { callback_url: url.trim(), callback_secret: secret! } : {};
  return { ...decisionOf(action, fields), ...callback };
}

function decisionOf(action: Decision['action'], fields: Record<string, string>): Decision {
  if (action === 'reject') return { action };
  return {
    action,
    endpoint:
      fields.endpoint === 'webrtc'
        ? { type: 'webrtc', user_id: Number(fields.user_id) }
        : { type: 'phone', number: fields.number!.trim() },
    ring_timeout: Number(fields.ring_timeout),
    max_duration: Number(fields.max_duration),
    record: fields.record !== undefined,
    transcribe: fields.transcribe !== undefined,
    ...(fields.announce && { announce: fields.announce }),
    ...(fields.voice_id && { voice_id: fields.voice_id }),
  };
}
