import { ByteWriter, ParquetWriter } from 'hyparquet-writer'

/** A column of a Parquet file: texts in UTF-8, times in ms since the epoch (UTC), or doubles. */
export interface ParquetColumn {
  name: string
  type: 'text' | 'time' | 'number'
  /** Rows may lack it. */
  isOptional?: boolean
}

export type ParquetValue = string | number | undefined

type SchemaElement = ConstructorParameters<typeof ParquetWriter>[0]['schema'][number]

const TYPES: { [type in ParquetColumn['type']]: Partial<SchemaElement> } = {
  text: { type: 'BYTE_ARRAY', converted_type: 'UTF8' },
  time: {
    type: 'INT64',
    converted_type: 'TIMESTAMP_MILLIS',
    logical_type: { type: 'TIMESTAMP', isAdjustedToUTC: true, unit: 'MILLIS' },
  },
  number: { type: 'DOUBLE' },
}

/** Makes a Parquet file of rows as they come; it only holds the rows of a row group, and the places of the groups. */
export class ParquetRows {
  private readonly columns: readonly ParquetColumn[]
  private readonly groupRows: number
  private readonly bytes = new ByteWriter()
  private readonly writer: ParquetWriter
  private values: ParquetValue[][]

  /** `groupRows`: rows of a row group, made into bytes at once. */
  constructor(columns: readonly ParquetColumn[], groupRows: number) {
    this.columns = columns
    this.groupRows = groupRows
    this.values = columns.map(() => [])
    this.writer = new ParquetWriter({
      writer: this.bytes,
      schema: [{ name: 'schema', num_children: columns.length }, ...columns.map(elementOf)],
      createdBy: 'Waymark',
    })
  }

  /** A row's values in the order of the columns. */
  add(row: readonly ParquetValue[]): void {
    for (let i = 0; i < row.length; i++) this.values[i].push(row[i])
    if (this.values[0].length === this.groupRows) this.finishGroup()
  }

  /** The bytes complete so far. */
  take(): Uint8Array {
    const taken = this.bytes.getBytes().slice()
    this.bytes.index = 0
    return taken
  }

  /** The last bytes; nothing may be added after them. */
  end(): Uint8Array {
    if (this.values[0].length > 0) this.finishGroup()
    void this.writer.finish()
    return this.take()
  }

  private finishGroup(): void {
    void this.writer.write({
      columnData: this.columns.map(({ name }, i) => ({ name, data: this.values[i] })),
      rowGroupSize: this.groupRows,
    })
    this.values = this.columns.map(() => [])
  }
}

const elementOf = ({ name, type, isOptional = false }: ParquetColumn): SchemaElement => ({
  name,
  repetition_type: isOptional ? 'OPTIONAL' : 'REQUIRED',
  ...TYPES[type],
})
