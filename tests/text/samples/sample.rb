# frozen_string_literal: true

require "json"

module Billing
  class Invoice
    attr_reader :lines, :currency

    def initialize(currency: "€", lines: [])
      @currency = currency
      @lines = lines
    end

    def total
      lines.sum { |line| line[:price] * (line[:count] || 1) }
    end

    def to_s
      <<~TEXT
        Invoice (#{lines.size} lines)
          total: #{format("%.2f", total / 100.0)} #{currency}

      TEXT
    end
  end
end

=begin
A block comment that nobody's read in years.
=end

if $PROGRAM_NAME == __FILE__
  data = JSON.parse(ARGF.read, symbolize_names: true) rescue []
  puts Billing::Invoice.new(lines: data)
end
