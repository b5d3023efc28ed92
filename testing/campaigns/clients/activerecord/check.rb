# The checks of the applications for Ruby: each prints `ok` or `FAIL`; finish says whether all passed.
# A check is a block that raises when it fails; same and fails raise.
$failed = 0
def check(name)
  yield
  puts "ok   #{name}"
rescue StandardError, NotImplementedError => e
  $failed += 1
  puts "FAIL #{name}: #{e.class}: #{e.message.gsub(/\s+/, ' ')[0, 500]} (#{e.backtrace.find { |l| l.include?('app.rb') }.to_s[/\d+/]})"
end
def same(expected, got)
  raise "expected #{expected.inspect}, got #{got.inspect}" unless expected == got
end
def fails(kind)
  yield
rescue kind
  nil
else
  raise "#{kind} expected"
end
