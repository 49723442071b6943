import { StatusBadge } from '../parts/status-badge.tsx';
import { webhooksText as text } from '../text/developers.ts';
import type { Webhook } from './queries.ts';

export function WebhookStatus({ webhook: { status, failing_since: failing } }: { webhook: Webhook }) {
  if (status === 'disabled') return <StatusBadge tone="neutral">{text.disabled}</StatusBadge>;
  if (failing !== null) return <StatusBadge tone="warning">{text.failing}</StatusBadge>;
  return <StatusBadge tone="good">{text.active}</StatusBadge>;
}
