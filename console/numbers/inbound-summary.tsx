import { Text } from '@mantine/core';
import { useSession } from '../app/session.ts';
import { ruleText as text } from '../text/numbers.ts';
import type { InboundRule } from './queries.ts';

export function InboundSummary({ rule }: { rule: InboundRule | null }) {
  const { id } = useSession();
  const isDeclined = rule === null || rule.action === 'reject';
  return (
    <Text size="sm" component="span" c={isDeclined ? 'dimmed' : undefined}>
      {summaryOf(rule, id)}
    </Text>
  );
}

function summaryOf(rule: InboundRule | null, ownUserId: number): string {
  if (rule?.action === 'ask') return text.ask(hostOf(rule.url ?? ''));
  if (rule?.action !== 'forward' || rule.endpoint === undefined) return text.reject;
  const { type, number, user_id: userId } = rule.endpoint;
  if (type === 'phone') return text.forwardPhone(number ?? '');
  return userId === undefined || userId === ownUserId ? text.forwardMe : text.forwardUser(userId);
}

function hostOf(url: string): string {
  return URL.canParse(url) ? new URL(url).host : url;
}
