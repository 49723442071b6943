import { ScrollArea, Table, Text } from '@mantine/core';
import { memo, type ReactNode } from 'react';

export interface Column<T> {
  id: string;
  header: string;
  cell: (row: T) => ReactNode;
  align?: 'left' | 'right';
  /** Hidden on screens narrower than this. */
  visibleFrom?: 'xs' | 'sm' | 'md' | 'lg';
}

interface DataTableProps<T> {
  /** Accessible name of the table. */
  label: string;
  columns: readonly Column<T>[];
  rows: readonly T[];
  rowKey: (row: T) => string | number;
  /** Opens a row. The first cell should contain a link for the keyboard. */
  onOpen?: (row: T) => void;
  /** Shown in place of rows. */
  empty?: ReactNode;
}

/**
 * A table that keeps all of its rows. Rows are drawn once if `columns` and `onOpen` stay the same values, as those of a
 * list that grows page by page should.
 */
export function DataTable<T>({ label, columns, rows, rowKey, onOpen, empty }: DataTableProps<T>) {
  if (rows.length === 0 && empty !== undefined) return empty;
  return (
    <ScrollArea type="auto" scrollbars="x" viewportProps={{ tabIndex: 0, 'aria-label': label, role: 'region' }}>
      <Table aria-label={label} highlightOnHover={onOpen !== undefined}>
        <Table.Thead>
          <Table.Tr>
            {columns.map(({ id, header, align = 'left', visibleFrom }) => (
              <Table.Th key={id} scope="col" ta={align} visibleFrom={visibleFrom}>
                <Text size="xs" c="dimmed" fw={600} component="span">
                  {header}
                </Text>
              </Table.Th>
            ))}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {rows.map((row) => (
            <Row key={rowKey(row)} row={row} columns={columns} onOpen={onOpen} />
          ))}
        </Table.Tbody>
      </Table>
    </ScrollArea>
  );
}

const Row = memo(function Row<T>({ row, columns, onOpen }: Pick<DataTableProps<T>, 'columns' | 'onOpen'> & { row: T }) {
  return (
    <Table.Tr className={onOpen && 'clickable-row'} onClick={onOpen && (() => onOpen(row))}>
      {columns.map(({ id, cell, align = 'left', visibleFrom }) => (
        <Table.Td key={id} ta={align} visibleFrom={visibleFrom}>
          {cell(row)}
        </Table.Td>
      ))}
    </Table.Tr>
  );
}) as <T>(props: Pick<DataTableProps<T>, 'columns' | 'onOpen'> & { row: T }) => ReactNode;
