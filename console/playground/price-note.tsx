import { Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { money } from '../parts/format.ts';
import { playgroundText } from '../text/playground.ts';
import { pricesQuery } from '../wallet/queries.ts';

export type PricedService = 'stt' | 'tts' | 'llm' | 'memory';

export function PriceNote({ service, children }: { service: PricedService; children: string }) {
  const { data } = useQuery(pricesQuery);
  const price = data?.prices.find(({ item }) => item === service);
  return (
    <Text size="xs" c="dimmed">
      {price?.price_usd !== undefined && <strong>{playgroundText.price(money(price.price_usd), price.unit)} </strong>}
      {children}
    </Text>
  );
}
