# Many objects that nothing keeps, without a collection at the end.
ARGV[0].to_i.times { Object.new }
